"""Advice as people see it: findings of a check, plans side by side, explanations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rabaska.domain.amounts import say_duration, say_seconds, say_size
from rabaska.views import time_spent
from rabaska.views.bottlenecks import BottleneckView, bottleneck_views, pace
from rabaska.views.words import ERROR, WARNING, counted

if TYPE_CHECKING:
    from rabaska.checkup.finding import Finding
    from rabaska.journeys.explain import Explanation
    from rabaska.journeys.plan import OnePlan, Plans
    from rabaska.knowledge.failures import KnownFailure
    from rabaska.steps.measured_speed import Measured

# The headings of the fields of `PlanRow`, in their order.
PLAN_HEADINGS = ("cluster", "queue", "GPUs", "jobs", "of", "GPU-hours", "start", "because")
NO_EXPLANATION = "No known explanation for this message."
SIMILAR = "Similar messages that are known:"

_SHOWN = 3  # explanations
_LAST_LINES = 12
_WORTH_A_QUEUE = 1.5  # times as fast as here; less is lost by waiting


@dataclass(frozen=True)
class FindingView:
    """A problem that a check found, and its fix."""

    tone: str  # error, warning
    what: str
    where: str
    why: str
    fix: str


@dataclass(frozen=True)
class PlanRow:
    """A cluster in a table of plans."""

    cluster: str
    queue: str
    gpus: str
    jobs: str
    walltime: str
    gpu_hours: str
    start: str
    because: str


@dataclass(frozen=True)
class PlanView:
    """What to request on one cluster, each fact with its label, and why."""

    cluster: str
    title: str
    row: PlanRow
    retired: str  # that the cluster is no longer there
    facts: tuple[tuple[str, str], ...]
    problem: str  # why no queue can run it
    profile_only: str  # that and why the cluster was not contacted


@dataclass(frozen=True)
class PlansView:
    """A plan for each cluster, and how fast the project ran where it was measured."""

    basis: str
    plans: tuple[PlanView, ...]
    measured: tuple[tuple[str, str], ...]  # a measurement; whether the cluster is worth it
    written: str = ""  # what was put into rabaska.toml


@dataclass(frozen=True)
class ExplanationView:
    """One known failure."""

    line: str
    meaning: str
    fix: str
    ours: str  # what rabaska does about it


@dataclass(frozen=True)
class ExplanationsView:
    """What is known about a message or a run; the likeliest first."""

    run: str
    known: tuple[ExplanationView, ...]
    status: str
    text: tuple[str, ...]  # the message itself, where nothing is known
    similar: tuple[ExplanationView, ...]
    slow: tuple[BottleneckView, ...] = ()  # what a run loses time with, the most costly first
    pace: str = ""  # of a run whose pace was measured and that nothing slows down
    time: tuple[str, ...] = ()  # where the time of a run went


def finding_views(findings: "Sequence[Finding]") -> tuple[FindingView, ...]:
    return tuple(
        FindingView(
            ERROR if finding.serious else WARNING,
            finding.what,
            finding.where,
            finding.why,
            finding.fix,
        )
        for finding in findings
    )


def findings_summary(views: Sequence[FindingView]) -> str:
    errors = sum(view.tone == ERROR for view in views)
    warnings = len(views) - errors
    if not views:
        return "no problems found"
    return f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"


def not_contacted(cluster: str, why: str) -> str:
    """That what is shown of a cluster comes from its profile; empty where it was contacted."""
    return f"{cluster} was not contacted; using its profile: {why}" if why else ""


def plans_view(plans: "Plans") -> PlansView:
    return PlansView(
        basis=plans.basis,
        plans=tuple(_plan_view(plan) for plan in plans.plans),
        measured=tuple(_measured(plans.measured)),
        written=plans.written,
    )


def _plan_view(plan: "OnePlan") -> PlanView:
    outlook = plan.outlook
    return PlanView(
        cluster=outlook.cluster,
        title=plan.title,
        row=_plan_row(plan),
        retired=plan.retirement,
        facts=tuple(_plan_facts(plan)),
        problem="" if outlook.choice else f"no queue can run it; {outlook.nearest}",
        profile_only=not_contacted(outlook.cluster, plan.unasked),
    )


def _plan_row(plan: "OnePlan") -> PlanRow:
    choice = plan.outlook.choice
    if choice is None:
        return PlanRow(plan.outlook.cluster, "none", "", "", "", "", "", plan.outlook.nearest)
    return PlanRow(
        cluster=plan.outlook.cluster,
        queue=choice.queue,
        gpus=f"{choice.nodes * choice.gpus} {choice.gpu}".strip(),
        jobs=str(choice.jobs),
        walltime=say_duration(choice.walltime),
        gpu_hours=f"{choice.gpu_hours:g}",
        start=plan.start,
        because="; ".join(choice.reasons[:2]),
    )


def _plan_facts(plan: "OnePlan") -> Iterator[tuple[str, str]]:
    choice = plan.outlook.choice
    if choice is None:
        return
    nodes = f"{choice.nodes} nodes, each " if choice.nodes > 1 else ""
    request = [f"{choice.gpus} {choice.gpu.upper() or 'GPU'}" if choice.gpus else "no GPU"]
    request += [counted(choice.cores, "core")] if choice.cores else []
    request += [say_size(choice.memory)] if choice.memory else []
    units = f", {choice.unit_hours:g} reference unit hours" if choice.unit_hours else ""
    yield "queue", f"{choice.queue}: {'; '.join(choice.reasons)}"
    yield "request", f"{nodes}{', '.join(request)}"
    yield "jobs", f"{choice.jobs} of {say_duration(choice.walltime)}"
    hours = f"{choice.gpu_hours:g} GPU-hours{units}"
    yield "cost", hours if choice.gpus else f"{choice.core_hours:g} core-hours"
    if plan.start:
        yield "start", plan.start
    for data in plan.data:
        yield "data", f"{data.dataset}: {data.read}, {data.why}"
        if data.stripe:
            yield "", data.stripe
    for rejected in plan.outlook.rejected:
        yield "not", f"{rejected.queue}: {'; '.join(rejected.reasons)}"


def _measured(measurements: "Sequence[Measured]") -> Iterator[tuple[str, str]]:
    """What was measured on each cluster, compared with what was measured here."""
    here = {one.unit: one for one in measurements if one.cluster == "here"}
    for one in measurements:
        verdict = ""
        base = here.get(one.unit)
        if base and one.cluster != "here":
            times = base.seconds / one.seconds
            word = "yes" if times >= _WORTH_A_QUEUE else "hardly"
            verdict = f"worth it? {word}: {times:.2g} times as fast as here"
        yield f"{one.cluster}: {say_seconds(one.seconds)} per {one.unit} ({one.run})", verdict


def explanations_view(explanation: "Explanation") -> ExplanationsView:
    known = explanation.known[:_SHOWN]
    unknown = not known and not explanation.standing
    lines = explanation.text.rstrip().splitlines()[-_LAST_LINES:]
    stands = explanation.stands
    about = f"run {explanation.run} on {explanation.cluster}: {explanation.state}"
    return ExplanationsView(
        run=about if explanation.run else "",
        known=tuple(_explanation_view(failure) for failure in known),
        status="" if known else explanation.standing,
        text=tuple(lines) if unknown else (),
        similar=tuple(_explanation_view(failure) for failure in explanation.nearest),
        slow=bottleneck_views(stands) if stands else (),
        pace=pace(stands) if stands else "",
        time=tuple(map(str, time_spent.remarks(stands))) if stands else (),
    )


def pace_lines(view: ExplanationsView) -> list[str]:
    """Where the time of a run went, and what it loses time with; an empty line before each."""
    lines = [*view.time, *([view.pace] if view.pace else [])]
    for one in view.slow:
        lines += ["", f"slow: {one.kind}. {one.what}", f"because {one.evidence}"]
        lines += [f"fix: {one.remedy}", *([f"gain: {one.gain}"] if one.gain else [])]
    return lines


def _explanation_view(failure: "KnownFailure") -> ExplanationView:
    return ExplanationView(failure.line[:300], failure.meaning, failure.fix, failure.ours)
