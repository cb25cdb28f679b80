"""Packs that are damaged, or made to do harm, are refused before anything is written."""

import os
import shutil
from pathlib import Path

import pytest
from forged import entry, forge, write_manifest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.node.data import pack_format
from rabaska.node.data.pack_format import FILE, FOLDER, LINK, BadPack, Index
from rabaska.node.data.pack_safety import leads_out, open_pack
from rabaska.node.data.stage import stage
from rabaska.node.data.verify import verify


def refusal(folder: Path, tmp_path: Path) -> str:
    """Why the pack is refused, after making sure that nothing was written."""
    with pytest.raises(BadPack) as caught:
        stage(str(folder), str(tmp_path / "node"))
    assert not (tmp_path / "node").exists() or os.listdir(tmp_path / "node") == []
    return str(caught.value)


def test_a_forged_pack_without_harm_is_accepted(tmp_path):
    harmless = [entry(b"a/cat"), entry(b"a", FOLDER), entry(b"l", LINK, b"a")]
    folder = forge(tmp_path / "pack", harmless)

    manifest, index = open_pack(str(folder))

    assert manifest.files == 1
    assert [found.name for found in index.entries(0, 3)] == [b"a/cat", b"l", b"a"]
    index.close()


@pytest.mark.parametrize(
    "name", [b"/etc/cat", b"../cat", b"a/../../cat", b"..", b".", b"", b"a//b", b"a/", b"nul\0"]
)
@pytest.mark.parametrize("kind", [FILE, LINK, FOLDER])
def test_a_name_that_leads_out_is_refused(tmp_path, name, kind):
    target = b"a" if kind == LINK else b""
    folder = forge(tmp_path / "pack", [entry(name, kind, target), entry(b"a", FOLDER)])

    refusal(folder, tmp_path)


@pytest.mark.parametrize("target", [b"/etc", b"..", b"a/../..", b"b/../../x", b"", b"../.."])
def test_a_link_that_leads_out_is_refused(tmp_path, target):
    folder = forge(tmp_path / "pack", [entry(b"l", LINK, target), entry(b"a", FOLDER)])

    assert "points outside" in refusal(folder, tmp_path)


@pytest.mark.parametrize(
    "entries",
    [
        [entry(b"a"), entry(b"a", offset=1536)],
        [entry(b"a"), entry(b"a", FOLDER)],
        [entry(b"a"), entry(b"a", LINK, b"b")],
        [entry(b"a", LINK, b"b"), entry(b"a", FOLDER)],
        [entry(b"a", LINK, b"b"), entry(b"a", LINK, b"c")],
        [entry(b"a", FOLDER), entry(b"a", FOLDER)],
    ],
)
def test_twins_are_refused(tmp_path, entries):
    assert "twice" in refusal(forge(tmp_path / "pack", entries), tmp_path)


@pytest.mark.parametrize("kind", [FILE, LINK])
def test_writing_through_a_link_or_a_file_is_refused(tmp_path, kind):
    over = entry(b"a", kind, b"b" if kind == LINK else b"")
    folder = forge(tmp_path / "pack", [over, entry(b"a/cat", offset=1536)])

    assert "folder that the pack does not contain" in refusal(folder, tmp_path)


@pytest.mark.parametrize(
    "lie",
    [
        {"offset": 4096}, {"size": 2**60}, {"offset": 2**63}, {"offset": 0}, {"offset": 513},
        {"shard": 1}, {"shard": 2**31}, {"size": 3585},
    ],
)  # fmt: skip
def test_a_place_that_lies_is_refused(tmp_path, lie):
    folder = forge(tmp_path / "pack", [entry(b"cat", **lie)])

    assert "is not where" in refusal(folder, tmp_path)


def test_files_that_overlap_are_refused(tmp_path):
    folder = forge(tmp_path / "pack", [entry(b"a"), entry(b"b")])

    assert "is not where" in refusal(folder, tmp_path)


@pytest.mark.parametrize("lie", [{"mode": 0o4755}, {"mode": 0o100644}])
def test_modes_beyond_permissions_are_refused(tmp_path, lie):
    assert "kind" in refusal(forge(tmp_path / "pack", [entry(b"a", **lie)]), tmp_path)


def test_a_name_elsewhere_is_refused(tmp_path):
    folder = forge(tmp_path / "pack", [entry(b"cat")], name_at=2**40)

    assert "wrong name" in refusal(folder, tmp_path)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "new\nline"])
def test_a_pack_whose_name_leads_elsewhere_is_refused(tmp_path, name):
    assert "cannot be called" in refusal(
        forge(tmp_path / "pack", [entry(b"cat")], name=name), tmp_path
    )


def test_counts_that_disagree_are_refused(tmp_path):
    folder = forge(tmp_path / "pack", [entry(b"cat")])
    write_manifest(folder, 2, 4)

    assert "the number of files" in refusal(folder, tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "index", "shard-00000.tar"])
def test_a_missing_part_is_named(tmp_path, name):
    folder = forge(tmp_path / "pack", [entry(b"cat")])
    (folder / name).unlink()

    assert name in refusal(folder, tmp_path)
    assert name in verify(str(folder))[0]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_flipped_bit_anywhere_is_found(tmp_path, data):
    pristine = tmp_path / "pack"
    if not pristine.exists():
        forge(pristine, [entry(b"a/cat"), entry(b"a", FOLDER), entry(b"l", LINK, b"a")])
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(pristine, copy)
    path = copy / data.draw(st.sampled_from(sorted(os.listdir(copy))))
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    before = pack_format.load_manifest(str(pristine))

    path.write_bytes(content)

    # The only change that does no harm is one that JSON does not see, such as another space.
    assert verify(str(copy)) or pack_format.load_manifest(str(copy))._replace(name="x") == before


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_make_the_index_reader_stumble(tmp_path, content):
    path = tmp_path / "index"
    path.write_bytes(content)

    with pytest.raises(BadPack):
        Index(str(path))


@given(st.binary(max_size=100))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_make_the_manifest_reader_stumble(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)

    with pytest.raises(BadPack):
        pack_format.load_manifest(str(tmp_path))


@given(
    st.lists(st.sampled_from([b"..", b".", b"a", b"b", b""]), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_a_link_said_to_stay_inside_does_so(parts, depth):
    target = b"/".join(parts)
    name = b"d/" * depth + b"link"

    if not leads_out(name, target):
        end = os.path.normpath(os.path.join(b"/root", os.path.dirname(name), target))
        assert end == b"/root" or end.startswith(b"/root/")
