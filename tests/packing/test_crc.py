"""crc32 of a whole, reckoned from its parts."""

from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from rabaska.packing.compiled import joined_crc

sizes = st.one_of(st.integers(0, 10_000), st.integers(0, 5).map(lambda times: times * 4096))


@given(st.binary(), sizes, st.integers(0, 255))
def test_two_parts_give_the_crc32_of_the_whole(first, size, byte):
    second = bytes([byte]) * size

    assert joined_crc(crc32(first), crc32(second), size) == crc32(first + second)
