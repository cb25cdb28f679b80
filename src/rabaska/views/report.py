"""A run for a supervisor or an appendix: what was run, how it went, how to run it again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rabaska.domain.amounts import say_seconds, say_size
from rabaska.domain.curves import Curve
from rabaska.domain.run_changes import requested
from rabaska.domain.runs import RunStatus
from rabaska.node.record.plan import CHANGED, Plan, StagedData
from rabaska.node.version import __version__
from rabaska.remote.place import quoted
from rabaska.steps.run_history import RunHistory
from rabaska.views import time_spent
from rabaska.views.bottlenecks import BottleneckView, bottleneck_views
from rabaska.views.run_cost import RunCost, Vitals, cost_facts, run_cost
from rabaska.views.runs import TONES, Advice, JobRow, labels_text, run_view
from rabaska.views.time_line import JobBar, time_line

_PREFIX = re.compile(
    r"^(train|training|val|valid|validation|test|eval|dev)[/_.\- ]"
    r"|[/_.\- ](train|val|valid|test|eval)$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[\w@%+=:,./{}-]+", re.ASCII)


@dataclass(frozen=True)
class Chart:
    """Curves that are drawn over each other, for they tell of the same thing."""

    title: str
    curves: tuple[tuple[str, Curve], ...]  # each under the name that the legend gives it


@dataclass(frozen=True)
class RunReport:
    name: str
    cluster: str
    state: str
    tone: str
    reason: str
    seen: float  # when the cluster told this, seconds since 1970 by our clock
    trouble: str  # why it is not newer
    what: Mapping[str, str]  # that was run, each with its label
    data: tuple[tuple[str, str], ...]  # datasets and their digests
    environment: tuple[str, ...]  # lines of the job script that enter it
    went: Mapping[str, str]
    cost: RunCost
    spent: Mapping[str, str]
    jobs: tuple[JobRow, ...]
    bars: tuple[JobBar, ...]
    charts: tuple[Chart, ...]
    vitals: tuple[Chart, ...]
    constant: tuple[tuple[str, str], ...]  # what the nodes measured that never changed
    log: tuple[str, ...]  # the last lines, where they may say why the run stopped
    advice: tuple[Advice, ...]
    slow: tuple[BottleneckView, ...]  # what it loses time with, the most costly first
    again: tuple[tuple[str, str], ...]  # a command, and what it does
    script: str
    version: str = __version__


def run_report(history: RunHistory) -> RunReport:
    run, plan = history.status, history.plan
    view, cost = run_view(run), run_cost(run, history.vitals)
    return RunReport(
        name=run.name,
        cluster=run.cluster,
        state=run.state.value,
        tone=TONES[run.state],
        reason=run.reason,
        seen=history.seen,
        trouble=history.trouble,
        what=_what(run, plan),
        data=tuple(map(_dataset, plan.datasets)) if plan else (),
        environment=tuple(plan.request.setup) if plan else (),
        went=_went(run),
        cost=cost,
        spent=cost_facts(cost),
        jobs=view.jobs,
        bars=time_line(run),
        charts=charts(history.curves),
        vitals=vital_charts(history.vitals),
        constant=constant_vitals(history.vitals),
        log=view.log,
        advice=view.advice,
        slow=bottleneck_views(run),
        again=tuple(_again(run, plan)),
        script=history.script,
    )


def charts(curves: Mapping[str, Curve]) -> tuple[Chart, ...]:
    """`train/loss` and `val/loss` are one chart, called `loss`."""
    grouped: dict[str, list[tuple[str, Curve]]] = {}
    for name, curve in curves.items():
        if len(curve):
            grouped.setdefault(_PREFIX.sub("", name) or name, []).append((name, curve))
    return tuple(Chart(title, tuple(found)) for title, found in grouped.items())


def chart_names(curves: Mapping[str, Curve]) -> list[tuple[str, list[str]]]:
    """The titles of the charts, and the names of the curves in each."""
    return [(chart.title, [name for name, _ in chart.curves]) for chart in charts(curves)]


def vital_title(name: str, unit: str) -> str:
    """`GPU use (fraction)`, of each GPU; `cores used` says its unit itself."""
    title = re.sub(r"^gpu\d+ ", "GPU ", name)
    plain = unit.partition("/")[0]
    per = unit.partition("/")[2]
    if not unit or (plain in title and not per):
        return title
    return f"{title} per second" if plain in title and per == "s" else f"{title} ({unit})"


def constant_vitals(vitals: Vitals) -> tuple[tuple[str, str], ...]:
    """What was the same all the time needs a sentence, and no chart: its title, and its value."""
    told = []
    for chart in _all_vitals(vitals):
        values = {value for _, curve in chart.curves for value in curve.values}
        if len(values) == 1:
            told.append((chart.title, f"{values.pop():.6g}"))
    return tuple(told)


def vital_charts(vitals: Vitals) -> tuple[Chart, ...]:
    """Of what changed; see `constant_vitals`."""
    same = {title for title, _ in constant_vitals(vitals)}
    return tuple(chart for chart in _all_vitals(vitals) if chart.title not in same)


def _all_vitals(vitals: Vitals) -> tuple[Chart, ...]:
    """What is measured alike is one chart: the use of all GPUs, the memory of all nodes."""
    grouped: dict[str, list[tuple[str, Curve]]] = {}
    for node, curves in vitals.items():
        for name, curve in curves.items():
            if not len(curve):
                continue
            label = f"{node} {name}" if len(vitals) > 1 else name
            grouped.setdefault(vital_title(name, curve.source), []).append((label, curve))
    return tuple(Chart(title, tuple(found)) for title, found in grouped.items())


def moment(seconds: float) -> str:
    """`2026-11-18 14:02:45 +0100`: for people who may read it years later, elsewhere."""
    try:
        then = datetime.fromtimestamp(seconds).astimezone() if seconds else None
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"  # what a node told may be no time at all
    return then.strftime("%Y-%m-%d %H:%M:%S %z") if then else ""


def command_line(words: Sequence[str]) -> str:
    """As somebody would type it; a name in braces is a folder that the job fills in."""
    return " ".join(word if _PLAIN.fullmatch(word) else quoted([word]) for word in words)


def _what(run: RunStatus, plan: Plan | None) -> dict[str, str]:
    words = command_line([*plan.command, *plan.resume] if plan else run.command)
    facts = {
        "project": str(run.about.get("project", "")),
        "command": words,
        "commit": _commit(plan) if plan else str(run.about.get("commit", "")),
        "code": f"snapshot {plan.code}" if plan else "",
        "cluster": _cluster(run, plan),
        "nodes": ", ".join(dict.fromkeys(job.host for job in run.jobs if job.host)),
        "submitted": moment(run.created),
        "run id": plan.id if plan else "",
        "note": labels_text(run.note, run.tags),
        "made like": str(run.about.get("like", "")),
        "variables": " ".join(f"{name}={value}" for name, value in plan.variables.items())
        if plan
        else "",
        "secrets": ", ".join(plan.secrets) if plan else "",
        **_requests(plan),
    }
    return {label: text for label, text in facts.items() if text}


def _requests(plan: Plan | None) -> dict[str, str]:
    if plan is None:
        return {}
    each = {what: text for what, text in requested(plan).items() if text and text != "0"}
    return {"each job requests": ", ".join(f"{what} {text}" for what, text in each.items())}


def _cluster(run: RunStatus, plan: Plan | None) -> str:
    scheduler = f" ({plan.origin.scheduler})" if plan and plan.origin.scheduler else ""
    return f"{run.cluster}{scheduler}"


def _commit(plan: Plan) -> str:
    origin = plan.origin
    if not origin.commit:
        return "not in a git repository"
    return f"{origin.commit}{' with changes' if origin.tree == CHANGED else ''}"


def _dataset(dataset: StagedData) -> tuple[str, str]:
    if not dataset.pack:
        return dataset.name, f"in place, {dataset.path}"
    return dataset.name, f"{dataset.pack.removeprefix(f'{dataset.name}-')}, as {dataset.mode}"


def _went(run: RunStatus) -> dict[str, str]:
    ended = [job.ended for job in run.jobs if job.ended]
    began = next((job.began for job in run.jobs if job.began), None)
    last = ", ".join(
        f"{name} {'nan' if value is None else f'{value:g}'}" for name, value in run.metrics.items()
    )
    took = ended[-1] - run.created if ended and run.state.over and run.created else 0.0
    checkpoint = run.checkpoint
    facts = {
        "began": moment(began or 0.0),
        "ended": moment(ended[-1]) if ended and run.state.over else "",
        "from submission to end": say_seconds(took) if took > 0 else "",
        "last reported": last,
        "newest valid checkpoint": f"{checkpoint.path}, {say_size(checkpoint.size)}"
        if checkpoint
        else "",
        "where the time went": time_spent.in_words(time_spent.of_chain(run)),
    }
    return {label: text for label, text in facts.items() if text}


def _again(run: RunStatus, plan: Plan | None) -> list[tuple[str, str]]:
    commands = [(f"rabaska rerun {run.name}", "the same code, data and arguments, as a new run")]
    commit = plan.origin.commit if plan else ""
    if plan and commit:
        changed = plan.origin.tree == CHANGED
        but = "; the run also had changes that are not in it" if changed else ""
        commands.append((f"git checkout {commit}", f"the code{but}"))
    if plan:
        words = command_line([*plan.command, *plan.resume])
        commands.append((words, "the program itself; names in {} are folders of the job"))
    commands.append((f"rabaska fetch {run.name}", "its results"))
    return commands


def unlike(reports: Sequence[RunReport]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What is not the same in all of these runs: a label, and the text of each."""
    facts = [{**_flat(report)} for report in reports]
    labels = dict.fromkeys(label for one in facts for label in one)
    rows = [(label, tuple(one.get(label, "") for one in facts)) for label in labels]
    return tuple(row for row in rows if len(set(row[1])) > 1)


def _flat(report: RunReport) -> dict[str, str]:
    own = ("run id", "submitted")  # of each run another
    return {
        "state": report.state,
        **{label: text for label, text in report.what.items() if label not in own},
        **{f"data {name}": text for name, text in report.data},
        "environment": "\n".join(report.environment),
        **{label: text for label, text in report.went.items() if label == "last reported"},
        **report.spent,
    }


def together(reports: Sequence[RunReport]) -> tuple[Chart, ...]:
    """The curves that several runs have, over each other."""
    found: dict[str, list[tuple[str, Curve]]] = {}
    for report in reports:
        for chart in report.charts:
            for name, curve in chart.curves:
                found.setdefault(name, []).append((report.name, curve))
    return tuple(Chart(name, tuple(curves)) for name, curves in found.items() if len(curves) > 1)
