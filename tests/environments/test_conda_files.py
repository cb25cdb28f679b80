"""What conda is told, and environments that are moved."""

import os
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node.environment import make_conda, relocation

# As conda-lock 2.5 lays it out.
LOCK = """\
version: 1
metadata:
  platforms:
  - linux-64
package:
- name: bzip2
  version: 1.0.8
  manager: conda
  platform: linux-64
  dependencies:
    libgcc-ng: '>=12'
  url: https://channel.example/linux-64/bzip2-1.0.8.conda
  hash:
    md5: aa
    sha256: bb
  category: main
  optional: false
- name: bzip2
  version: 1.0.8
  manager: conda
  platform: osx-64
  dependencies: {}
  url: https://channel.example/osx-64/bzip2-1.0.8.conda
  hash:
    md5: cc
- name: tqdm
  version: 4.66.0
  manager: pip
  platform: linux-64
  dependencies: {}
  url: https://files.example/tqdm-4.66.0-py3-none-any.whl
  hash:
    sha256: dd
"""


def test_a_lock_is_a_list_of_addresses_for_a_conda_that_cannot_read_it(monkeypatch):
    monkeypatch.setattr(make_conda.platform, "machine", lambda: "x86_64")

    text, by_pip = make_conda.as_given("conda-lock.yml", LOCK, "/opt/bin/conda")

    assert text == "@EXPLICIT\nhttps://channel.example/linux-64/bzip2-1.0.8.conda#aa\n"
    assert by_pip == ["https://files.example/tqdm-4.66.0-py3-none-any.whl#sha256=dd"]
    assert make_conda.as_given("conda-lock.yml", LOCK, "micromamba") == (LOCK, [])


@pytest.mark.parametrize(
    ("tool", "text", "words"),
    [
        ("micromamba", "dependencies:", ["create", "--yes"]),
        ("/opt/mamba", "dependencies:", ["env", "create"]),
        ("conda", "dependencies:", ["env", "create"]),
        ("conda", "@EXPLICIT\n", ["create", "--yes"]),
    ],
)
def test_each_tool_is_told_in_its_own_words(tool, text, words):
    told = make_conda.create_words(tool, "/p", "f.yml", text)

    assert told == [tool, *words, "--prefix", "/p", "--file", "f.yml"]


def test_an_environment_is_made_under_a_path_with_room_for_others(tmp_path):
    assert len(relocation.long_path(str(tmp_path))) >= 220
    assert max(map(len, relocation.long_path("/s").split("/"))) <= 255


OLD = b"/store/" + b"_placehold" * 6


@given(st.lists(st.one_of(st.just(OLD), st.binary(max_size=12)), max_size=8))
def test_a_program_keeps_its_size_and_its_texts_their_ends(pieces):
    content = b"".join(pieces)

    moved = relocation.with_path(content, OLD, b"/new")

    assert len(moved) == len(content)
    ended = re.search(re.escape(OLD) + rb"[^\0]*\0", content)
    if ended:
        assert ended[0].replace(OLD, b"/new") in moved


def test_what_lies_outside_of_an_environment_is_not_written_to(tmp_path):
    (tmp_path / "env").mkdir()
    listed = '{"prefix": "/old", "text": ["../theirs"], "binary": []}'
    (tmp_path / "env" / relocation.LIST).write_text(listed)
    (tmp_path / "theirs").write_text("/old")

    assert relocation.main([str(tmp_path / "env")]) == 1
    assert (tmp_path / "theirs").read_text() == "/old"


def test_each_name_of_a_file_gets_the_new_path(tmp_path):
    made, moved = tmp_path / "made", tmp_path / "moved"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "a").write_text(f"#!{made}/bin/python\n")
    os.link(made / "bin" / "a", made / "bin" / "b")

    relocation.pack(str(made), str(tmp_path / "packed.tar"))
    moved.mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "packed.tar", "-C", moved], check=True)
    assert relocation.main([str(moved)]) == 0

    for name in "ab":
        assert (moved / "bin" / name).read_text() == f"#!{moved}/bin/python\n"


def test_a_path_that_does_not_fit_is_told(tmp_path, capsys):
    folder = tmp_path / "env"
    folder.mkdir()
    (folder / relocation.LIST).write_text('{"prefix": "/o", "text": [], "binary": ["x"]}')

    assert relocation.main([os.fspath(folder)]) == 1
    assert "cannot be moved" in capsys.readouterr().err
