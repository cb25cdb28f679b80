"""Headers built by hand say the same as those that tar writes."""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node.data import tar_headers

names = st.binary(min_size=1, max_size=300).filter(
    lambda name: b"\0" not in name and not name.endswith(b"/")
)


def read_back(content: bytes) -> tarfile.TarInfo:
    member = tarfile.open(fileobj=io.BytesIO(content + tar_headers.END), encoding="utf-8").next()
    assert member is not None
    return member


@given(names, st.integers(0, 2**50), st.integers(0, 0o777), st.integers(-(10**12), 10**12))
def test_a_header_is_read_back_as_it_was_written(name, size, mode, mtime):
    member = read_back(tar_headers.header(name, size=size, mode=mode, mtime=mtime))

    assert member.name.encode("utf-8", "surrogateescape") == name
    assert (member.size, member.mode, member.mtime) == (size, mode, mtime)
    assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")


@given(names, names)
def test_a_link_is_read_back_with_its_target(name, target):
    member = read_back(tar_headers.header(name, kind=tar_headers.LINK, target=target))

    assert member.issym()
    assert member.linkname.encode("utf-8", "surrogateescape") == target


plain = st.tuples(
    st.text(
        st.characters(max_codepoint=127, exclude_characters="\0"), min_size=1, max_size=100
    ).map(str.encode),
    st.integers(0, tar_headers.LARGEST_SIZE),
    st.integers(0, 0o777),
    st.integers(0, tar_headers.LATEST_TIME),
)


@given(st.lists(plain, min_size=1, max_size=8))
def test_headers_made_together_are_those_made_one_by_one(files):
    columns = list(zip(*files, strict=True))

    together = list(map(b"".join, zip(*tar_headers.plain_headers(*columns), strict=True)))

    assert together == [
        tar_headers.header(name, size=size, mode=mode, mtime=mtime)
        for name, size, mode, mtime in files
    ]


@pytest.mark.parametrize("length", range(88, 110))
def test_a_pax_record_counts_its_own_digits(length):
    member = read_back(tar_headers.header(b"\xc3\xa9" + b"x" * length))

    assert member.name == "é" + "x" * length


@pytest.mark.parametrize(("size", "zeros"), [(0, 0), (1, 511), (512, 0), (513, 511)])
def test_padding_fills_the_last_block(size, zeros):
    assert tar_headers.padding(size) == zeros
