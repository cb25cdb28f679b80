"""Results that are carried over into a new run: all of them, of one moment, and into one run."""

import json
import os
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.journeys.test_going_on_differently import SETTINGS, TRAIN

from rabaska.errors import CommandFailed, Unreachable, WrongUse
from rabaska.journeys import rerun, resume
from rabaska.journeys.resume import _say_where
from rabaska.node.record.plan import StagedData
from rabaska.packing.dataset_sources import pack_origin
from rabaska.packing.make_pack import PackOptions
from rabaska.packing.pack_cache import complete_manifest
from rabaska.records.home import Home, home
from rabaska.records.run_index import find
from rabaska.remote.fetch_record import FetchResult
from rabaska.steps.carry_over import _recover_pack
from rabaska.steps.connect import connect_for
from rabaska.steps.progress import SilentReporter
from rabaska.steps.query_status import status


@pytest.fixture
def stopped(laptop):
    """A run that failed after two steps, and its folder."""
    (laptop.project / "train.py").write_text(TRAIN)
    (laptop.project / "rabaska.toml").write_text(SETTINGS)
    run = laptop.types("run", "-q", "--no-doctor", draws=["0001"])
    laptop.types("wait", run, "-q")
    return run, laptop.user.home / "store/runs" / run


def submit_again(folder):
    with (folder / "submissions.jsonl").open("a") as stream:
        stream.write(json.dumps({"submission": "b" * 32, "time": 0, "jobs": 1}) + "\n")


def test_a_run_whose_results_were_not_all_copied_is_never_submitted(laptop, stopped, monkeypatch):
    run, folder = stopped

    def is_cut_off(*_):
        raise CommandFailed("the connection broke")

    monkeypatch.setattr(rerun, "carry_results", is_cut_off)
    with pytest.raises(CommandFailed, match="the connection broke"):
        laptop.types("rerun", run, "--from-checkpoint", draws=["0002"])

    os.utime(folder.with_name("tiny-0002") / "run.json", (1, 1))  # else it may be on its way
    told = laptop.status("tiny-0002")
    assert "were not all copied" in told["reason"]
    assert "`rabaska delete tiny-0002`" in told["hint"]
    with pytest.raises(WrongUse, match="cannot be submitted"):
        laptop.types("resume", "tiny-0002")
    laptop.types("delete", "tiny-0002", "--yes")


def test_results_that_a_resumed_run_may_have_changed_are_not_used(laptop, stopped, monkeypatch):
    run, folder = stopped
    really = rerun.carry_results

    def carry(*given):
        really(*given)
        submit_again(folder)

    monkeypatch.setattr(rerun, "carry_results", carry)

    with pytest.raises(WrongUse, match="was submitted again meanwhile"):
        laptop.types("rerun", run, "--from-checkpoint", draws=["0002"])

    assert (folder.with_name("tiny-0002") / "INCOMPLETE").exists()
    assert not (folder.with_name("tiny-0002") / "submissions.jsonl").exists()


def test_one_command_moves_a_run_and_only_if_it_was_not_resumed(laptop, stopped):
    run, folder = stopped
    laptop.goes_there()
    record = find(home().runs, run)
    now, cluster = status(record, home()), connect_for(record, home())
    made = replace(record, name="tiny-0002", cluster="there")

    submit_again(folder)
    with pytest.raises(WrongUse, match="was submitted again meanwhile"):
        _say_where(record, now, made, cluster)
    assert not (folder / "MOVED").exists()

    now = replace(now, submission="b" * 32)
    _say_where(record, now, made, cluster)
    with pytest.raises(WrongUse, match="another command continues") as refused:
        _say_where(record, now, replace(made, name="tiny-0003"), cluster)

    assert "`rabaska delete tiny-0003`" in refused.value.hint
    assert json.loads((folder / "MOVED").read_text())["run"] == "tiny-0002"
    assert not list(folder.glob("MOVED.*"))


def test_who_resumes_too_late_does_not_change_what_the_jobs_of_the_other_request(
    laptop, stopped, monkeypatch
):
    run, folder = stopped
    really = resume.submit

    def submit(*given, **more):
        submit_again(folder)
        return really(*given, **more)

    monkeypatch.setattr(resume, "submit", submit)
    before = (folder / "run.json").read_bytes()

    with pytest.raises((WrongUse, Unreachable)):
        laptop.types("resume", run, "--walltime", "12h")

    assert (folder / "run.json").read_bytes() == before
    assert not list(folder.glob("*.partial"))


@pytest.mark.parametrize("remnant", ["nothing", "a damaged pack", "another command was quicker"])
def test_a_pack_that_is_not_complete_here_is_brought_from_the_run_s_cluster(tmp_path, remnant):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/sample").write_text("1")
    pack = pack_origin((tmp_path / "data",), tmp_path / "far/packs", PackOptions("data"))
    here = Home(tmp_path / "home")
    mine = here.store / "packs" / pack.identity
    if remnant == "a damaged pack":
        mine.mkdir(parents=True)
        (mine / "shard").write_text("torn")

    def bring(source, target, _node, **_):
        shutil.copytree(source, target)
        if remnant == "another command was quicker":
            shutil.copytree(source, mine)
        return FetchResult(1)

    source = SimpleNamespace(
        name="far", store=str(tmp_path / "far"), place=SimpleNamespace(bring=bring)
    )

    _recover_pack(StagedData("data", pack.identity, "stage"), source, here, SilentReporter())

    assert complete_manifest(mine)
    assert [one.name for one in mine.parent.iterdir()] == [pack.identity]
