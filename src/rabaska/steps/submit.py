"""Submit: a run's folder made on its cluster, and its jobs handed to the scheduler there."""

import io
import json
import os
import tarfile
import time
import uuid
from collections.abc import Sequence

from rabaska.domain.jobs import JobId, JobSpec, together
from rabaska.errors import CommandFailed, SubmissionRefused, Unreachable, WrongUse
from rabaska.node.here import queue
from rabaska.node.job import program_process
from rabaska.node.login.create_run import TAKEN
from rabaska.node.login.submit_job import INCOMPLETE, OTHERS, REFUSED
from rabaska.node.record import plan as plans
from rabaska.node.record import run_folder
from rabaska.remote.place import Outcome, quoted, surely
from rabaska.remote.ssh_errors import refuse_full_disk
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.plan_run import MORE, SCRIPT, PlannedRun
from rabaska.steps.progress import Reporter, SilentReporter, report_if_slow

_IN_JOB = (queue.TAG, program_process.TAG)  # variables of whatever a job starts
_PATIENCE = 5.0  # seconds with a scheduler, before it is said that it is waited for


class NothingTaken(SubmissionRefused):
    """The scheduler refused the run, and took no job of it."""


class NameTaken(Exception):
    """Another run has this folder."""


def create(
    planned: PlannedRun, cluster: ConnectedCluster, folder: str, *, incomplete: bool = False
) -> None:
    """Make the run folder, complete or not at all; NameTaken when another run has that name.

    One that is `incomplete` is not submitted before `carry_results` has filled it.
    """
    script = quoted([*cluster.node, "create", folder])
    content = _run_folder_tar(planned, incomplete=incomplete)
    outcome = surely(lambda: cluster.run(script, feed=content))
    if outcome.exit_code == TAKEN:
        raise NameTaken(folder)
    if outcome.exit_code != 0:
        refuse_full_disk(outcome.complaint)
        raise CommandFailed(
            f"the run folder could not be made on {cluster.name}", why=outcome.complaint
        )


def _run_folder_tar(planned: PlannedRun, *, incomplete: bool) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("logs", "jobs", "carried/000/output", "carried/000/checkpoints"):
            _add(archive, name, None)
        _add(archive, "run.json", plans.dumps(planned.plan).encode())
        _add(archive, SCRIPT, planned.script.encode())
        if incomplete:
            _add(archive, run_folder.INCOMPLETE, b"")
        if planned.secrets:
            # Its own mode: who shares a store with a group shares no secrets.
            values = json.dumps(planned.secrets.reveal()).encode()
            _add(archive, "secrets.json", values, mode=0o600)
        if planned.more:
            _add(archive, MORE, planned.more.encode())
    return content.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes | None, *, mode: int = 0o666) -> None:
    entry = tarfile.TarInfo(name)
    entry.mtime = int(time.time())
    if data is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o777  # less the umask there
        archive.addfile(entry)
        return
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def submit(
    spec: JobSpec,
    cluster: ConnectedCluster,
    *,
    script_name: str = SCRIPT,
    resume: bool = False,
    since: str = "",
    put: str = "",
    reporter: Reporter | None = None,
) -> JobId:
    """Hand the run's script to the scheduler: at once as an array, or each job after another.

    `since` is the last submission of the run that we know of; if it is not the last one any
    more, somebody else submitted the run, and nothing is submitted. Else the plan and the script
    whose names end in `put` become the run's.
    """
    reporter = reporter or SilentReporter()
    if cluster.cluster.is_here and any(name in os.environ for name in _IN_JOB):
        reporter.warn(
            "this run ends with the job that it is submitted from, as all that a job starts; wait "
            "for it there (`--wait`), or submit it from another terminal"
        )
    words = ["--since", since, *(["--resume"] if resume else [])]
    words += [f"--put={put}"] if put else []
    if spec.jobs == 1 or cluster.scheduler.capabilities.array:
        return _submitted(spec, cluster, script_name, ["--jobs", str(spec.jobs), *words], reporter)
    chain = [_submitted(spec, cluster, script_name, words, reporter)]
    for number in range(2, spec.jobs + 1):
        try:
            chain.append(_job_after(chain[-1], spec, cluster, script_name, reporter))
        except (SubmissionRefused, Unreachable) as refusal:
            # What was taken runs, and goes as far as it goes; `resume` adds jobs later.
            sure = isinstance(refusal, SubmissionRefused)
            taken = "was not taken" if sure else "may not have been taken"
            reporter.warn(f"job {number} of {spec.jobs} {taken}: {refusal.why}")
            break
        except KeyboardInterrupt:
            taken = f"{number - 1} of {spec.jobs} jobs were submitted, and the next one may be"
            reporter.warn(f"{taken}; `rabaska resume {spec.name}` adds jobs when they are over")
            raise
    return together(chain)


def _job_after(
    before: JobId, spec: JobSpec, cluster: ConnectedCluster, script_name: str, reporter: Reporter
) -> JobId:
    words = ["--after", before.native]
    try:
        return _submitted(spec, cluster, script_name, words, reporter, after=before)
    except SubmissionRefused as refusal:
        # Two jobs that begin together do no harm: one of them claims the run.
        if not cluster.scheduler.capabilities.is_dependency_over(refusal.why):
            raise
        return _submitted(spec, cluster, script_name, words, reporter)


def _submitted(
    spec: JobSpec,
    cluster: ConnectedCluster,
    script_name: str,
    words: Sequence[str],
    reporter: Reporter,
    *,
    after: JobId | None = None,
) -> JobId:
    """One submission; the run folder remembers it before we do."""
    run, folder = spec.name, cluster.run_folder(spec.name)
    command = cluster.scheduler.submit_command(f"{folder}/{script_name}", spec, after=after)
    find = cluster.find_command(run)
    asking = ["--find", quoted(find)] if find else []
    # Under the same mark it may be said twice: the second gets the answer of the first.
    submit = [*cluster.node, "submit", folder, "--mark", uuid.uuid4().hex, *words, *asking]
    waiting = (
        f"run {run}: waiting for {cluster.name} to answer its submission; Ctrl-C does not "
        f"end it, and `rabaska status {run}` shows what becomes of it"
    )
    with report_if_slow(_PATIENCE, waiting, reporter):
        outcome = surely(lambda: cluster.run(quoted([*submit, "--", *command])))
    _refuse_unanswered(outcome, run, cluster)
    if outcome.exit_code != 0:
        said = f"{command[0]} said: {outcome.complaint}"
        raise refused(run, cluster, said, new="--resume" not in words)
    job = cluster.scheduler.read_job_id(outcome.output)
    if job is None:
        raise SubmissionRefused(
            f"{cluster.name} took run {run} but gave no job id",
            why=f"{command[0]} said: {outcome.output.strip()!r}",
            hint=f"`rabaska status {run}` asks again",
        )
    return job


def _refuse_unanswered(outcome: Outcome, run: str, cluster: ConnectedCluster) -> None:
    if outcome.exit_code == OTHERS:
        raise WrongUse(
            f"run {run} was submitted by another command meanwhile",
            hint=f"`rabaska status {run}` shows its status",
        )
    if outcome.exit_code == INCOMPLETE:
        raise WrongUse(
            f"run {run} cannot be submitted",
            why=outcome.complaint,
            hint=f"`rabaska delete {run}` removes it; then give the command that made it again",
        )
    # Who was killed, or failed otherwise, may have left the scheduler's command at work.
    if outcome.exit_code not in (0, REFUSED):
        raise Unreachable(
            f"{cluster.name} did not answer whether it took run {run}",
            why=outcome.complaint,
            hint=f"`rabaska wait {run}` goes on asking; nothing is submitted twice",
        )


def refused(run: str, cluster: ConnectedCluster, said: str, *, new: bool) -> NothingTaken:
    """The scheduler's own words, what they mean, and what to do about it."""
    from rabaska.knowledge.failures import explain

    known = explain(said, stage="submit", scheduler=cluster.scheduler.name, cluster=cluster.name)
    if not known:
        hint = f"`rabaska {'run --dry-run' if new else f'show {run}'}` prints the script"
        return NothingTaken(f"{cluster.name} refused run {run}", why=said, hint=hint)
    return NothingTaken(
        f"{cluster.name} refused run {run}: {known[0].meaning}",
        why=said,
        hint=f"{known[0].fix}",
    )
