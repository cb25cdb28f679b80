"""A server inside a job, reached through the scheduler; and a run that is only a server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rabaska.domain.projects import Chain, Project
from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.errors import CommandFailed, RunFailed, WrongUse
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remembered
from rabaska.remote.place import quoted
from rabaska.remote.relayed import Relayed
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.progress import Reporter
from rabaska.steps.query_status import status
from rabaska.steps.run_identity import in_folder, refuse_other

_PAUSES = (0.5, 15.0)  # seconds between two questions, the shortest and the longest
_LIVE = (RunState.SUBMITTING, RunState.QUEUED, RunState.RUNNING, RunState.SUSPENDED)
_SERVE = ("python", "-m", "rabaska.node", "serve")  # our own program, which every program finds


def session(project: Project, kind: str, *options: str) -> Project:
    """The project as one job that runs a server instead of its program."""
    resources = replace(project.resources, nodes=1, tasks=1)
    return replace(
        project,
        name=f"{project.name}-{kind}",
        command=(*_SERVE, kind, *options),
        resources=resources,
        launch="program",
        resume=(),
        chain=Chain(jobs=1, at_most=1, requeue=False, grace=project.chain.grace),
        watch=False,
    )


def live_session(kind: str, on: str, folder: Path, home: Home) -> RunRecord | None:
    """The newest session of this kind of the project that waits or runs."""
    for record in reversed(remembered(home.runs)):
        ours = record.cluster == on and record.project == str(folder)
        if ours and kind in (record.tags or ()) and status(record, home).state in _LIVE:
            return record
    return None


def until_running(record: RunRecord, home: Home, reporter: Reporter) -> Job:
    """Its job, as soon as one runs; RunFailed when none will."""
    pause, longest = _PAUSES
    longest = 1.0 if record.cluster == "here" else longest
    told = ""
    while True:
        now = status(record, home)
        if now.state is RunState.RUNNING and now.jobs and not now.jobs[-1].how:
            return now.jobs[-1]
        if now.state.over:
            raise over(now)
        if now.state.value != told:
            told = now.state.value
            reporter.step(f"{record.name}: {told}{f' ({now.reason})' if now.reason else ''}")
        time.sleep(pause)
        pause = min(pause * 1.3, longest)


def job_at_work(record: RunRecord, home: Home) -> Job:
    """The job that runs now; WrongUse where there is none."""
    now = status(record, home)
    if now.state is not RunState.RUNNING or not now.jobs or now.jobs[-1].how:
        raise WrongUse(
            f"run {record.name} is {now.state.value}; this needs a running program",
            hint="without a run, a job of its own is started",
        )
    return now.jobs[-1]


def over(now: RunStatus) -> RunFailed:
    last = [line for line in now.tail.splitlines() if line.strip()][-1:]
    return RunFailed(
        f"{now.name} is {now.state.value}",
        why="; its last line: ".join([now.reason, *last]),
        hint=f"`rabaska logs {now.name}` shows what it printed",
    )


def ask_for(kind: str, record: RunRecord, home: Home) -> None:
    """Have the job of a run start a server next to its program."""
    cluster = connect_for(record, home)
    folder = quoted([f"{record.path}/servers"])
    script = f"mkdir -p -m 700 {folder} && touch {folder}/{kind}.ask"
    outcome = cluster.place.run(in_folder(record, script))
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code != 0:
        raise CommandFailed(f"{kind} could not be asked for", why=outcome.complaint)


@contextmanager
def relayed(record: RunRecord, job: Job, kind: str, home: Home) -> Iterator[Relayed]:
    """The way to a server of that kind in a job that runs."""
    cluster = connect_for(record, home)
    cluster.run("true")  # which sends our program where it is missing

    def ended() -> RunFailed | None:
        now = status(record, home)
        return over(now) if now.state.over else None

    script, what = _script(record, job, kind, cluster), f"{kind} of {record.name}"
    stream = Relayed(cluster.place, script, what, ended)
    try:
        yield stream
    finally:
        stream.close()


def _script(record: RunRecord, job: Job, kind: str, cluster: ConnectedCluster) -> str:
    words = [*cluster.node, "relay", record.path, kind, str(job.number)]
    return "exec " + quoted(cluster.scheduler.beside_command(job.id, words, terminal=False))
