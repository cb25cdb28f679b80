"""Advancing: what earlier runs of a project say of jobs that are over before anything is saved."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from rabaska.domain.amounts import say_duration
from rabaska.domain.projects import Project
from rabaska.domain.save_interval import Saving, Standstill, standstill
from rabaska.errors import CannotAdvance, RabaskaError, StartsOver
from rabaska.node.record.chain_rule import Again
from rabaska.node.record.plan import Plan
from rabaska.node.record.resume_evidence import by_source
from rabaska.records import caches
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remembered
from rabaska.steps.carry import take_snapshot
from rabaska.steps.plan_run import grace
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.query_status import status


def check_advance(
    project: Project, on: str, home: Home, reporter: Reporter, *, code: str = ""
) -> None:
    """CannotAdvance when the same program, run there before, shows that no job would save.

    Where it may yet save within an epoch, for nobody has watched it so long, it is only told.
    `code` is the snapshot that will be run; "" is the code as it is now.
    """
    found = foreseen(project, on, home, code=code)
    if found and found.over:
        raise StartsOver(
            "each job of this run would begin the training again",
            why=found.why,
            hint=f"{found.remedy}; `--anyway` submits it all the same",
        )
    if found and found.certain:
        raise CannotAdvance(
            f"no job of this run would save anything on {on}",
            why=found.why,
            hint=f"{found.remedy}; `--anyway` submits it all the same",
        )
    if found:
        reporter.warn(f"a job may be over before anything is saved: {found.why}; {found.remedy}")


def tell_if_alone(project: Project, on: str, home: Home, asked: Plan, reporter: Reporter) -> None:
    """Tell that one job must do for a program that does not go on from a checkpoint."""
    if not _alone(project):
        return
    seen = newest_saving(project, on, home)
    shown = seen is not None and seen.over and seen.code == asked.code
    again = Again(f"{seen.run} started over") if seen and shown else by_source(asked)
    if again.why and again.certain:
        limit = say_duration(project.resources.walltime)
        reporter.warn(f"{again.why}: all of it must fit into one job of {limit}")


def tell_if_twice(record: RunRecord, home: Home, reporter: Reporter) -> None:
    """Tell of a run that does the same on that cluster and is not over."""
    others = [
        each
        for each in remembered(home.runs)
        if each.work and each.work == record.work and each.cluster == record.cluster
        if not each.is_same(record)
    ]
    with suppress(RabaskaError):  # nothing depends on the answer
        now = status(others[-1], home) if others else None
        if now and not now.state.over:
            reporter.warn(
                f"run {now.name} is {now.state.value}, with the same code, data and arguments; "
                f"`rabaska cancel {record.name}` ends this one if one is enough"
            )


def _alone(project: Project) -> bool:
    """Whether its chain is one job, and does not grow."""
    return max(project.chain.jobs, project.chain.at_most or 1) == 1


def foreseen(project: Project, on: str, home: Home, *, code: str = "") -> Standstill | None:
    """By the newest run on that cluster of the same code and command that showed how it saves."""
    seen = newest_saving(project, on, home)
    found = standstill(seen, project.resources.walltime, grace(project)) if seen else None
    if seen is None or found is None or (found.over and _alone(project)):
        return None
    # Last, for it reads all of the code: what was changed since may save otherwise.
    code = code or take_snapshot(project, home, SilentReporter()).digest
    return found if code == seen.code else None


def newest_saving(project: Project, on: str, home: Home) -> Saving | None:
    known = [each for each in remembered(home.runs) if each.cluster == on]
    told = caches.cached_reports(home.reports, on) if known else {}
    for record in reversed(known):
        seen = _saving(record, told.get(record.path, {}).get("saving"))
        if seen and record.project == str(project.folder) and _is_same(seen, project):
            return seen
    return None


def _is_same(seen: Saving, project: Project) -> bool:
    return seen.command == project.command and seen.resume in (None, project.resume)


def longest_stretch(project: Project, on: Sequence[str], home: Home) -> timedelta:
    """From one save to the next, on the slowest of these clusters and this computer."""
    seen = [newest_saving(project, name, home) for name in dict.fromkeys(("here", *on))]
    return timedelta(seconds=max((each.every or 0.0 for each in seen if each), default=0.0))


def _saving(record: RunRecord, told: caches.Report | None) -> Saving | None:
    if not told:
        return None
    seconds = {name: told.get(name) for name in ("every", "epoch", "unsaved")}
    words = tuple(told["command"])
    starting, over = told.get("starting") or 0.0, told.get("over") or ""
    added = tuple(told["resume"]) if "resume" in told else None
    again = told.get("begins_again") or ""
    return Saving(
        record.name,
        told["code"],
        words,
        starting,
        over=over,
        begins_again=again,
        resume=added,
        **seconds,
    )
