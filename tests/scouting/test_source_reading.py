"""Files that no parser loves are passed over, never a crash."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.scouting import settings_draft
from rabaska.scouting.project_facts import scout
from rabaska.scouting.script_options import options
from rabaska.scouting.source import LARGEST, read


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"print 'Python 2'\n", "Python 3 cannot parse it, line 1"),
        (b"def broken(:\n", "Python 3 cannot parse it, line 1"),
        (b"x = '\x00'\n", "null bytes"),
        (b"#" * (LARGEST + 1), "too large"),
    ],
)
def test_a_file_that_cannot_be_parsed_says_why(tmp_path, content, why):
    path = tmp_path / "train.py"
    path.write_bytes(content)

    assert why in read(path, "train.py").problem


def test_a_file_in_another_encoding_is_read(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes("# entraîné\nparser.add_argument('--data')\n".encode("latin-1"))

    found = options(read(path, "train.py"))

    assert [option.spelled for option in found] == ["--data"]


def test_nesting_deeper_than_the_parser_allows_is_no_crash(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("x = " + "(" * 5000 + "1" + ")" * 5000)

    assert read(path, "train.py").problem


def test_a_project_of_odd_names_still_gives_a_draft(tmp_path):
    project = tmp_path / 'café "quoted" {x}'
    (project / "data" / "cats ' {dogs}").mkdir(parents=True)
    for number in range(120):
        (project / "data" / "cats ' {dogs}" / f"{number}.jpg").write_bytes(b"")
    (project / "train {a}.py").write_text("import torch\ntorch.save({}, 'state.pt')\n")
    (project / "loop").symlink_to(project, target_is_directory=True)

    found = scout(project)

    assert 'path = "data/cats \' {dogs}"' in settings_draft.text(found)


@given(st.integers(), st.integers(0, 40))
def test_a_script_with_random_damage_never_stops_the_scout(tmp_path_factory, seed, cuts):
    rng = random.Random(seed)
    content = bytearray(_SCRIPT)
    for _ in range(cuts):
        where = rng.randrange(len(content))
        content[where : where + rng.randrange(3)] = bytes([rng.randrange(256)])
    project = tmp_path_factory.mktemp("damaged")
    (project / "train.py").write_bytes(content)

    assert settings_draft.text(scout(project))


_SCRIPT = b"""
import argparse, os, sys, torch
p = argparse.ArgumentParser()
p.add_argument("--data", default=os.path.join("data", "x"), type=str)
p.add_argument("--resume", action="store_true")
args = p.parse_args()
name = "run-%d" % 3
for step in range(3):
    print(f"step {step}")
    torch.save({}, os.path.join("out", name, "epoch-{}.pt".format(step)))
"""
