"""Rehearse: run a project briefly, interrupt it, and compare with a run that was left alone."""

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from rabaska.checkup.subject import started_by
from rabaska.domain import rehearsal
from rabaska.domain.amounts import say_duration
from rabaska.domain.projects import Project
from rabaska.domain.rehearsal import Curve, Interrupted, RehearsalVerdict, Saved, Used, judge
from rabaska.domain.runs import RECOGNISED, RunState, RunStatus, names_for, new_name
from rabaska.errors import RunFailed
from rabaska.journeys.cancel import cancel
from rabaska.journeys.fetch import fetch
from rabaska.journeys.wait import wait
from rabaska.node.record.plan import PlannedInterruption
from rabaska.node.record.run_folder import RunFolder
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, find, remembered
from rabaska.remote.place import quoted
from rabaska.scouting import scripts, training_state
from rabaska.steps import rehearsal_results
from rabaska.steps.carry import Carried, carry
from rabaska.steps.connect import connect
from rabaska.steps.draw_curves import picture
from rabaska.steps.findings import check_script
from rabaska.steps.new_run import create_run, submit_run
from rabaska.steps.pick_request import with_request
from rabaska.steps.plan_run import check_job, job_spec
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.rehearsal_results import Left

# What is named by its digest, and so cannot be changed by a rehearsal that shares it.
_SHARED = ("packs", "code", "node")
# Ends that no cut brought about.
_BY_ITSELF = ("crashed", "staging failed", "damaged data", *RECOGNISED)


@dataclass(frozen=True)
class RehearsalOptions:
    cuts: int = 4
    limit: timedelta = timedelta(minutes=5)  # of each job
    seed: int = 0


@dataclass(frozen=True)
class Rehearsal:
    project: str
    cluster: str
    verdict: RehearsalVerdict
    reference: Curve
    runs: tuple[Interrupted, ...]
    took: timedelta
    folder: Path  # the logs, the picture and this, as JSON


def rehearse(
    project: Project,
    on: str,
    home: Home,
    options: RehearsalOptions,
    reporter: Reporter | None = None,
) -> Rehearsal:
    """Run, interrupt, compare. The user's own runs and their list are left as they are."""
    reporter, began = reporter or SilentReporter(), time.monotonic()
    check_script(project)
    name = new_name(f"rehearse {project.name}")
    folder = project.folder / "results" / name
    with _stage(home, name) as own:
        play = _Play(_carried(project, on, own, options), own)
        with play.cleared():
            reporter.step(f"on {on}: an uninterrupted run")
            [alone] = play.perform([()])
            course = rehearsal_results.course(alone)
            _tell(course, reporter)
            planned = rehearsal.planned(course, options.cuts, options.seed)
            reporter.step(f"{len(planned)} runs that are interrupted, {options.cuts} times in all")
            cut = play.perform(planned)
            reference = _whole(rehearsal_results.curves(alone))
            runs = tuple(rehearsal_results.interrupted(each, alone) for each in cut)
            _check_cut(runs)
            verdict = judge(reference, runs, _saved(alone, cut), _used(project))
            _keep_logs([alone, *cut], folder)
    took = timedelta(seconds=time.monotonic() - began)
    return Rehearsal(project.name, on, verdict, reference, runs, took, folder)


@contextmanager
def _stage(home: Home, name: str) -> Iterator[Home]:
    """A home for this rehearsal only; what is shared with the user's is never changed there."""
    own = Home(home.folder / "rehearsals" / name)
    own.store.mkdir(parents=True)
    home.profiles.mkdir(parents=True, exist_ok=True)
    own.profiles.symlink_to(home.profiles)
    for kind in _SHARED:
        (home.store / kind).mkdir(parents=True, exist_ok=True)
        (own.store / kind).symlink_to(home.store / kind)
    try:
        yield own
    finally:
        shutil.rmtree(own.folder, ignore_errors=True)


def _carried(project: Project, on: str, own: Home, options: RehearsalOptions) -> Carried:
    """The project with short jobs, on its cluster: for all runs of the rehearsal."""
    cluster, silent = connect(on, own), SilentReporter()
    chain = replace(project.chain, grace=None)
    resources = replace(project.resources, walltime=options.limit)
    left_out = project.left_out - {"walltime"}
    short = replace(project, chain=chain, resources=resources, left_out=left_out)
    short = with_request(short, cluster.cluster, silent)
    job = job_spec(short, cluster.cluster, cluster.store)
    check_job(short, job, cluster, silent)
    return carry(short, job, cluster, own, silent)


@dataclass(frozen=True)
class _Play:
    """Runs of the project, each short, one for each list of cuts."""

    carried: Carried
    own: Home

    def perform(self, planned: Sequence[Sequence[PlannedInterruption]]) -> list[Left]:
        """Runs with these cuts, side by side as far as there is room, to their ends."""
        records = [self._begin(each) for each in planned]
        for record, interrupted in zip(records, planned, strict=True):
            ended = wait(record, self.own)
            if not interrupted:
                _check_end(ended)
        return [self._left(record) for record in records]

    def _begin(self, planned: Sequence[PlannedInterruption]) -> RunRecord:
        """Submit one run, with a job for each cut and one to the end."""
        jobs, carried = len(planned) + 1, self.carried
        chain = replace(carried.project.chain, jobs=jobs, at_most=jobs)
        project, job = replace(carried.project, chain=chain), replace(carried.job, jobs=jobs)
        carried = replace(carried, project=project, job=job)
        run, record = create_run(
            carried, names_for(project.name), self.own, SilentReporter(), planned
        )
        submit_run(run, record, carried.cluster, self.own, SilentReporter())
        return find(self.own.runs, record.name)

    def _left(self, record: RunRecord) -> Left:
        """The files of a run that is over; from another computer they are fetched."""
        if self.carried.cluster.cluster.is_here:
            run = RunFolder(record.path)
            return Left(run, Path(run.carried(run.holder())))
        brought = fetch(record, self.own, to=self.own.folder / "fetched" / record.name).folder
        return Left(RunFolder(str(brought / "run")), brought)

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Nothing of the rehearsal goes on, or stays on its cluster, however it ends."""
        try:
            yield
        finally:
            known = remembered(self.own.runs)
            for record in known:
                cancel(record, self.own)
            if known and not self.carried.cluster.cluster.is_here:
                self.carried.cluster.place.run(
                    f"rm -rf {quoted([record.path for record in known])}"
                )


def _check_end(run: RunStatus) -> None:
    """Refuse what fails without any cut: there is nothing to compare then."""
    ended = run.jobs[-1] if run.jobs else None
    if run.state is RunState.FAILED and ended and ended.how in _BY_ITSELF:
        raise RunFailed(
            "the program fails in the rehearsal",
            why=f"{run.reason}\n{run.tail}".strip(),
            hint=" ".join(fix for _, fix in run.explanations) or run.hint,
        )


def _tell(course: rehearsal.Course, reporter: Reporter) -> None:
    if not course.steps:
        raise RunFailed(
            "the rehearsal has nothing to compare",
            why="no line of the program's log tells a step and a loss",
            hint="print lines like `step 40 loss 0.4123`, or name the step in `progress`",
        )
    until = "to its end" if course.finished else "to the time limit"
    reporter.step(f"it tells of {len(course.steps)} steps in {say_duration(course.took)}, {until}")


def _check_cut(runs: Sequence[Interrupted]) -> None:
    if not any(each.how for run in runs for each in run.stretches):
        raise RunFailed(
            "the program was over before it could be interrupted",
            why="a rehearsal looks ten times a second how far it is",
            hint="let it do more: words after -- go to the program, as in `-- --epochs 5`",
        )


def _whole(curves: Sequence[Curve]) -> Curve:
    return {step: loss for curve in curves for step, loss in curve.items()}


def _saved(alone: Left, cut: Sequence[Left]) -> Saved:
    newest = next((path for left in (alone, *cut) if (path := left.newest())), None)
    return training_state.saved(newest) if newest else Saved()


def _used(project: Project) -> Used:
    script = started_by(project, scripts.find(project.folder))
    return training_state.used(script.sources) if script else Used()


def _keep_logs(all_left: Sequence[Left], folder: Path) -> None:
    for left in all_left:
        shutil.copytree(left.folder.logs, folder / left.folder.name, dirs_exist_ok=True)


def write(told: Rehearsal, report: object) -> Path:
    """Write the picture of the curves, and `report` beside it; the path of the picture."""
    target = told.folder / "curves.svg"
    target.write_text(picture(told.reference, [run.curve for run in told.runs]))
    (told.folder / "rehearsal.json").write_text(json.dumps(report, indent=2) + "\n")
    return target
