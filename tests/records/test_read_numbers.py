"""A copy of what was read: used for the very file it is of, and never otherwise."""

import math

import pytest

from rabaska.node.series.series_format import SeriesFile
from rabaska.records import series_files
from rabaska.records.series_files import RunNumbers


@pytest.fixture(autouse=True)
def _every_byte_is_worth_it(monkeypatch):
    monkeypatch.setattr(series_files, "WORTH", 1)


def tell(folder, values, start=0, name="loss"):
    file = SeriesFile(f"{folder}/series/job-001.tsv", 1, 1000.0)
    for step, value in enumerate(values, start=start):
        file.add(name, "printed", step, 1000.0 + step, value)
    file.flush()


def read(folder):
    numbers = RunNumbers(folder, folder / "read")
    numbers.refresh()
    return {name: list(curve.values) for name, curve in numbers.series.items()}


def test_what_was_read_is_not_read_again_and_what_is_new_is(tmp_path, monkeypatch):
    tell(tmp_path, [3.0, 2.0])
    tell(tmp_path, [7.0], name="odd \\ name")
    first = read(tmp_path)
    lines = []
    really = series_files.JobNumbers._read_lines
    monkeypatch.setattr(
        series_files.JobNumbers,
        "_read_lines",
        lambda self, text: (lines.append(text), really(self, text)),
    )
    again = read(tmp_path)
    tell(tmp_path, [1.0, math.inf], start=2)

    grown = read(tmp_path)

    assert first == again == {"loss": [3.0, 2.0], "odd \\ name": [7.0]}
    assert grown == {"loss": [3.0, 2.0, 1.0, math.inf], "odd \\ name": [7.0]}
    assert len(lines) == 1


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"not json\n", b'{"format": 9}\n', None])
def test_a_damaged_copy_is_not_used(tmp_path, damage):
    tell(tmp_path, [3.0, 2.0])
    read(tmp_path)
    (copy,) = (tmp_path / "read").iterdir()
    copy.write_bytes(copy.read_bytes()[:-5] if damage is None else damage)

    assert read(tmp_path) == {"loss": [3.0, 2.0]}


def test_a_file_that_was_replaced_is_read(tmp_path):
    tell(tmp_path, [3.0, 2.0])
    read(tmp_path)
    (tmp_path / "series" / "job-001.tsv").unlink()
    tell(tmp_path, [5.0, 4.0, 3.0])

    assert read(tmp_path) == {"loss": [5.0, 4.0, 3.0]}


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    tell(tmp_path, [3.0])
    (tmp_path / "read").write_text("in the way")

    assert read(tmp_path) == {"loss": [3.0]}
