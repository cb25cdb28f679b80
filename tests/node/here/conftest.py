"""What every test of the embedded cluster starts from."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_queue import Here, until


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    folder = tmp_path / "a 'queue' of its own"
    folder.mkdir()
    here = Here(folder)
    yield here
    jobs = list((here.queue / "jobs").iterdir()) if here.queue.exists() else []
    if here.active():
        here.run("cancel", *(job.name for job in jobs))
        until(lambda: here.run("status").returncode == 0 and not here.active())
