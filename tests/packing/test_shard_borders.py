"""Where shards part: about equal, stable when files come and go, samples kept together."""

from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from rabaska.packing.shard_borders import ShardRange, cuts, load_of, parts_of, sampled, stem

weights = st.lists(st.integers(512, 5000), min_size=1, max_size=400)


def cut(names: list[bytes], sizes: list[int], size: int) -> list[ShardRange]:
    hashes = [crc32(name) for name in names]
    places = sampled(hashes)
    load = load_of(places, [sizes[place] for place in places])

    def together(place: int) -> bool:
        return stem(names[place]) == stem(names[place - 1])

    return cuts(hashes, load, size, together=together)


def numbered(count: int) -> list[bytes]:
    return [b"%06d.jpg" % number for number in range(count)]


@given(weights, st.integers(1, 10**6))
def test_every_file_lies_in_one_cut_and_in_order(sizes, size):
    found = cut(numbered(len(sizes)), sizes, size)

    assert [place for part in found for place in range(part.begin, part.end)] == list(
        range(len(sizes))
    )
    assert [part.last for part in found] == [False] * (len(found) - 1) + [True]


@given(weights)
def test_cuts_have_about_the_size_that_is_wanted(sizes):
    size = 20_000

    found = cut(numbered(len(sizes)), sizes, size)

    for part in found[:-1]:
        assert size * 0.75 - 5000 <= sum(sizes[part.begin : part.end]) <= size * 1.25 + 5000


@given(st.integers(0, 4999), st.integers(0, 10**6))
def test_a_file_more_moves_few_borders(place, number):
    names = numbered(5000)
    more = sorted([*names, b"%06d-%d.jpg" % (place, number)])
    sizes = [1536] * len(more)

    before = {names[part.begin] for part in cut(names, sizes, 150_000)}
    after = {more[part.begin] for part in cut(more, sizes, 150_000)}

    assert len(before) > 30
    assert len(before & after) >= len(before) * 2 // 3


def test_the_files_of_one_sample_are_never_parted():
    names = sorted(b"%05d.%s" % (n, kind) for n in range(900) for kind in (b"cls", b"jpg", b"txt"))

    found = cut(names, [1536] * len(names), 15_000)

    assert len(found) > 100
    assert all(names[part.begin].endswith(b".cls") for part in found)


def test_few_of_many_files_are_asked_for_their_size():
    hashes = [crc32(name) for name in numbered(100_000)]

    assert 500 < len(sampled(hashes)) < 4000
    assert sampled(hashes[:50]) == list(range(50))


@given(
    st.lists(st.tuples(st.sampled_from([b"a.x", b"b.y", b"c"]), st.integers(1, 3000)), min_size=1),
    st.integers(1, 2000),
    st.sampled_from([0, 512, 5000]),
)
def test_parts_hold_every_file_once_and_large_ones_begin_and_end_one(files, size, end):
    names = [b"%04d/%s" % (place // 2, name) for place, (name, _) in enumerate(files)]
    lengths = [length for _, length in files]

    found = parts_of(names, lengths, size, end)

    places = [place for begin, stop in found for place in range(begin, stop)]
    assert places == list(range(len(names)))
    for begin, stop in found:
        for place in (place for place in range(begin, stop) if lengths[place] >= size):
            # The files of one sample stay together: a large one follows those before it.
            assert place == begin or stem(names[place]) == stem(names[place - 1])
            assert {stem(name) for name in names[place:stop]} == {stem(names[place])}
