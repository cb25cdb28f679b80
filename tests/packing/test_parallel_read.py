"""Many files at once come back in their order."""

import subprocess
import sys
import threading

import pytest

from rabaska.packing.parallel_read import ParallelReader, read_parallel

NAMES = [b"%d/%03d" % (folder, number) for folder in range(7) for number in range(100)]


def test_neighbours_are_taken_from_each_folder_in_turn():
    chunks = list(read_parallel(NAMES))

    assert [chunk[0][:2] for _, chunk in chunks[:7]] == [b"%d/" % folder for folder in range(7)]
    assert [name for _, chunk in sorted(chunks) for name in chunk] == NAMES


@pytest.mark.parametrize("size", [1, 2**26])
def test_all_are_handed_over_in_order_however_large(size):
    threads = set()

    def read(chunk: list[bytes]) -> list[bytes]:
        threads.add(threading.get_ident())
        return chunk

    found = list(ParallelReader(read, lambda _: size).results(NAMES))

    assert found == NAMES
    assert len(threads) > 1


def test_while_too_much_is_held_nothing_more_is_read():
    held = most = 0
    lock = threading.Lock()

    def read(chunk: list[bytes]) -> list[bytes]:
        nonlocal held, most
        with lock:
            held += len(chunk)
            most = max(most, held)
        return chunk

    for _ in ParallelReader(read, lambda _: 2**20).results(NAMES):
        with lock:
            held -= 1

    assert most <= 64 + 33 * 8  # what is allowed, and what was begun before it was reached


def test_what_cannot_be_read_is_raised_where_it_is_wanted():
    def read(chunk: list[bytes]) -> list[bytes]:
        if b"3/050" in chunk:
            raise PermissionError("3/050")
        return chunk

    results = ParallelReader(read, lambda _: 1).results(NAMES)

    assert [next(results) for _ in range(348)] == NAMES[:348]
    with pytest.raises(PermissionError):
        next(results)


def test_so_many_files_may_be_open_at_once():
    program = (
        "import resource; _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\n"
        "from rabaska.packing.parallel_read import ParallelReader; ParallelReader(list, len)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], min(1024, hard % 2**63))"
    )

    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    now, wanted = ended.stdout.split()
    assert now == wanted
