"""All that this computer knows of a run: its status, its plan, its script, its numbers."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rabaska.domain import untrusted
from rabaska.domain.curves import Curve
from rabaska.domain.runs import RunStatus
from rabaska.errors import NoSuchRun, RabaskaError
from rabaska.node import files
from rabaska.node.record.plan import Plan, WrongFormat, from_json, to_json
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.series_files import copy_folder
from rabaska.steps.connect import connect_for
from rabaska.steps.live_runs import LiveRun, LiveRuns
from rabaska.steps.read_plan import PLAN, read_plan, read_script


@dataclass(frozen=True)
class RunHistory:
    record: RunRecord
    status: RunStatus
    plan: Plan | None = None  # None where it is gone
    script: str = ""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    vitals: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)  # by node
    seen: float = 0.0  # when its cluster told this, seconds since 1970
    trouble: str = ""  # why it is not newer


def run_histories(records: Sequence[RunRecord], home: Home) -> list[RunHistory]:
    """Each cluster is asked once; of one that does not answer, what it told last."""
    runs = LiveRuns(records, home)
    live = runs.refresh(explained=True)
    while any(one.arriving for one in live):
        live = runs.refresh(explained=True)
    return [_history(one, runs, home) for one in live]


def _history(live: LiveRun, runs: LiveRuns, home: Home) -> RunHistory:
    record = live.record
    if live.status is None:
        raise NoSuchRun(
            f"nothing is known of {record.name} yet",
            why=live.problem,
            hint=f"try again when {record.cluster} can be reached",
        )
    plan, script = plan_and_script(record, home, reachable=not live.problem)
    return RunHistory(
        record=record,
        status=live.status,
        plan=plan,
        script=script,
        curves=runs.series(record),
        vitals=runs.vitals(record),
        seen=live.heard,
        trouble=live.problem,
    )


def plan_and_script(
    record: RunRecord, home: Home, *, reachable: bool = True
) -> tuple[Plan | None, str]:
    """As they were submitted. They never change, so a copy that is here is as good."""
    file = str(copy_folder(home, record) / "plan.json")
    with suppress(OSError, ValueError, TypeError, KeyError, WrongFormat, untrusted.Unexpected):
        kept = files.read_json(file) or {}
        return from_json(untrusted.checked(kept["plan"], PLAN)), str(kept["script"])
    if not reachable:
        return None, ""
    with suppress(RabaskaError):
        cluster = connect_for(record, home)
        plan, script = read_plan(record, cluster), read_script(record, cluster)
        copy_folder(home, record).mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write_whole(file, json.dumps({"plan": to_json(plan), "script": script}))
        return plan, script
    return None, ""
