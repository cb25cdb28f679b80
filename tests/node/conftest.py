"""Fixtures of the node side: its zipapp, agents for a program, a disk that is soon full."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agents, make_run
from tests import disks

from rabaska.packing.node_bundle import bundle


@pytest.fixture(scope="session")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The node side as it travels."""
    return bundle(tmp_path_factory.mktemp("node"))


@pytest.fixture
def agents_for(tmp_path: Path, zipapp: Path) -> Iterator[Any]:
    """`agents_for("program text", plan field=…)`: a new run of that program, and its agents."""
    made: list[Agents] = []

    def agents_for(program: str, **changes: Any) -> Agents:
        extra = changes.pop("code_files", {})
        name = changes.setdefault("run", f"digits-{len(made)}")
        code = {"train.py": textwrap.dedent(program), **extra}
        run = make_run(changes.pop("store", tmp_path / "store"), code, **changes)
        made.append(Agents(zipapp, run, tmp_path / "local" / name))
        return made[-1]

    yield agents_for
    for agents in made:
        for agent in agents.started:
            if agent.poll() is None:
                agent.kill()
            agent.wait()
            if agent.stdout is not None:
                agent.stdout.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    with disks.small_disk(tmp_path / "small disk", "2m") as folder:
        yield folder
