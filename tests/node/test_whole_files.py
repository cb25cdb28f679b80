"""Files that are there whole or not at all, whoever else writes them."""

import os
from concurrent.futures import ThreadPoolExecutor

from rabaska.node import files


def test_threads_may_write_the_same_file_at_once(tmp_path):
    path = tmp_path / "here.json"
    contents = [str(number) * 1000 for number in range(8)]

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda content: files.write_whole(str(path), content), contents * 8))

    assert path.read_text() in contents
    assert os.listdir(tmp_path) == ["here.json"]


def test_two_names_of_unfinished_files_are_never_the_same(tmp_path):
    path = str(tmp_path / "notes")

    names = [files.partial_name(path) for _ in range(3)]

    assert len(set(names)) == 3
    assert all(name.startswith(path + ".") and name.endswith(files.PARTIAL) for name in names)


def test_a_program_can_be_started_once_it_is_there(tmp_path):
    path = tmp_path / "python"

    files.write_program(str(path), "#!/bin/sh\n")

    assert path.read_text() == "#!/bin/sh\n"
    assert path.stat().st_mode & 0o777 == 0o700
