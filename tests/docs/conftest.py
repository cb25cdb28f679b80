"""A reader for each part of a page, with a cluster where the page needs one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pages import Part
from readers import Reader, ReaderWithCluster
from tests.lab.fixtures import make_lab

__all__ = ["make_lab", "reader_of"]


@pytest.fixture
def reader_of(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[Part], Reader]]:
    readers: list[Reader] = []

    def reader_of(part: Part) -> Reader:
        if part.needs_lab:
            lab = request.getfixturevalue("make_lab")(user="ada")
            readers.append(ReaderWithCluster(part.example, tmp_path, lab))
        else:
            readers.append(Reader(part.example, tmp_path))
        return readers[-1]

    yield reader_of
    for reader in readers:
        reader.leave()
