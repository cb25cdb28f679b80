"""What the other nodes of a job are made ready with, and what is said when they are cleaned."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import make_run

from rabaska.node.data import pack_format
from rabaska.node.job import other_nodes, run_program
from rabaska.node.record import chain_rule
from rabaska.node.record.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path, {"train.py": "", "conf/a.yaml": "x"})


@pytest.fixture
def local(tmp_path: Path) -> Path:
    base = tmp_path / "disk"
    base.mkdir(mode=0o700)
    return base / "rabaska-0123456789abcdef" / "job"


def test_files_that_other_nodes_have_beside_the_code_are_named_before_they_go(
    run: RunFolder, local: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert other_nodes.stage_here(run, 0, str(local)) == 0
    (local / "code" / "ckpt").mkdir()
    (local / "code" / "ckpt" / "rank-8.pt").write_text("a shard")
    (local / "code" / "__pycache__").mkdir()
    (local / "code" / "__pycache__" / "train.pyc").write_text("")

    assert other_nodes.clean_here(run, 0, str(local)) == 0

    said = capsys.readouterr().out
    assert "not kept: ckpt/rank-8.pt" in said
    assert "{output}" in said
    assert "pyc" not in said
    assert not local.exists()


def test_nothing_is_said_of_a_node_that_left_nothing(
    run: RunFolder, local: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other_nodes.stage_here(run, 0, str(local))

    other_nodes.clean_here(run, 0, str(local))

    assert capsys.readouterr().out == ""
    assert not local.exists()


def test_what_the_nodes_say_as_they_are_cleaned_is_in_the_log(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [sys.executable, "-c", "print('rabaska: 1 file on n2 is not kept: a.pt')"]
    monkeypatch.setattr(other_nodes, "_on_every_node", lambda *_: words)
    work: Any = SimpleNamespace(
        run=run, job=1, plan=SimpleNamespace(launch=SimpleNamespace(nodes=2))
    )

    with other_nodes.left_clean(work, "/nowhere"):
        pass

    assert Path(run.log(1)).read_text().strip() == "rabaska: 1 file on n2 is not kept: a.pt"


def test_staging_that_is_no_longer_wanted_is_ended() -> None:
    step = subprocess.Popen(
        ["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )

    other_nodes.break_off_staging(step)

    assert step.poll() is not None


def test_a_failure_on_the_first_node_ends_the_staging_of_the_others(
    run: RunFolder, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def begin(*_: object) -> Any:
        begun.append(subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE))
        return begun[0]

    def fail(*_: object) -> Any:
        raise pack_format.BadPack("shard 3 is damaged")

    monkeypatch.setattr(other_nodes, "begin_staging", begin)
    monkeypatch.setattr(run_program.prepare_program, "unpack_code", lambda *_: {})
    monkeypatch.setattr(run_program.stage_datasets, "stage_data", fail)
    alone = SimpleNamespace(launch=SimpleNamespace(nodes=1), datasets=[])
    work: Any = SimpleNamespace(run=run, job=1, stop_reason=lambda: None, plan=alone)

    end = run_program.run_program(work, str(local), None)

    assert end.how == chain_rule.STAGING_FAILED
    assert begun[0].returncode is not None


def test_a_node_that_cannot_be_cleaned_ends_nothing(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(other_nodes, "_PATIENCE", 0.5)
    monkeypatch.setattr(other_nodes, "_on_every_node", lambda *_: ["sleep", "60"])
    work: Any = SimpleNamespace(
        run=run, job=1, plan=SimpleNamespace(launch=SimpleNamespace(nodes=2))
    )

    with other_nodes.left_clean(work, "/nowhere"):
        pass

    assert "could not clean up other nodes" in capsys.readouterr().out
