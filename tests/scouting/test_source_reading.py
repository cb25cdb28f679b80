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


@pytest.mark.parametrize(
    "line",
    [
        "x = a" + ".b()" * 600,
        "a" + ".b" * 1500 + "()",
        "torch.save(m, " + "+".join(["y"] * 900) + ")",
        "if x == 0:\n    pass\n" + "".join(f"elif x == {n}:\n    pass\n" for n in range(1200)),
    ],
    ids=["calls", "attributes", "sum", "elif"],
)
def test_what_is_nested_too_deep_is_named_and_passed_over(tmp_path, line):
    (tmp_path / "train.py").write_text(f"import torch\n{line}\nfor epoch in range(3):\n    f()\n")
    (tmp_path / "other.py").write_text("for epoch in range(3):\n    f()\n")

    found = scout(tmp_path)

    assert found.command == ("python", "other.py")
    assert "train.py was skipped" in " ".join(found.warnings)


@pytest.mark.parametrize(
    "shape",
    [
        "x = a" + ".b()" * 90,
        "if x:\n pass\n" + "elif x:\n pass\n" * 190,
        "torch.save(m, " + "+".join(["y"] * 190) + ")",
    ],
)
def test_what_is_nested_as_deep_as_is_read_is_no_crash(tmp_path, shape):
    (tmp_path / "train.py").write_text(f"import torch\n{shape}\nfor epoch in range(3):\n    f()\n")

    assert scout(tmp_path).command == ("python", "train.py")


def test_words_that_are_too_long_for_a_path_are_no_crash(tmp_path):
    long = "x" * 400
    (tmp_path / "train.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\n"
        f"p.add_argument('--config', default='{long}')\n"
        f"p.add_argument('--data', default='{long}')\np.parse_args()\n"
    )
    (tmp_path / "README.md").write_text(f"    python train.py --config {long}y\n")

    assert scout(tmp_path).command[:2] == ("python", "train.py")


def test_a_link_to_itself_is_no_crash(tmp_path):
    (tmp_path / "train.py").write_text("for epoch in range(3):\n    f()\n")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "README.md").symlink_to("README.md")

    assert scout(tmp_path).command == ("python", "train.py")


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
