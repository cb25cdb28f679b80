"""The only module that prints: data to standard output, everything else to standard error.

Clusters and programs wrote much of it, so control characters are replaced here, see `controls`.
"""

import json as json_format
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rabaska.cli import render_status
from rabaska.cli.text import HarmlessLog, Painted, columns, harmless, painted, plain
from rabaska.domain.amounts import say_duration
from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.errors import RabaskaError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from rabaska.domain.clusters import Cluster
    from rabaska.domain.observed import ProfileFact
    from rabaska.journeys.clusters import Added
    from rabaska.journeys.init import Proposal
    from rabaska.node.record.plan import Plan
    from rabaska.steps.plan_run import PlannedRun

_WIDTH_WITHOUT_TERMINAL = 160


def console(*, errors: bool = False) -> "Console":
    from rich.console import Console

    stream = sys.stderr if errors else sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(stderr=errors, width=width, highlight=False, soft_wrap=not stream.isatty())


def data(text: str) -> None:
    """What somebody asked for: a program that reads it gets it as it is."""
    print(harmless(text) if sys.stdout.isatty() else text)


def log(chunks: Iterable[bytes]) -> None:
    """What a program printed, as it comes; a file or another program gets it as it is."""
    shown = HarmlessLog() if sys.stdout.isatty() else bytes
    for chunk in chunks:
        raw(shown(chunk))


def raw(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def json(value: Any) -> None:
    print(json_format.dumps(plain(value), indent=2))


def note(text: str) -> None:
    print(harmless(text), file=sys.stderr)


def error(problem: RabaskaError) -> None:
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    note(f"{painted('error:', 'red', colours=colours)} {problem}")


class Steps:
    """Tells a journey on standard error: bars on a terminal, plain lines elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def step(self, text: str) -> None:
        self._clear()
        if not self._quiet:
            note(text)

    def warn(self, text: str) -> None:
        self._clear()
        note(f"note: {text}")

    def moved(
        self, what: str, done: int, total: int, *, unit: str = "bytes", aside: str = ""
    ) -> None:
        if self._quiet or not sys.stderr.isatty():
            return
        what, aside = harmless(what), harmless(aside)
        if self._bars is None:
            self._bars = _bars(unit)
            self._bars.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total, aside=aside)
        self._bars.update(self._tasks[what], completed=done, total=total, aside=aside)

    def _clear(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars, self._tasks = None, {}


def _bars(unit: str) -> "Progress":
    from rich import progress

    amount = progress.DownloadColumn() if unit == "bytes" else progress.MofNCompleteColumn()
    rate = [progress.TransferSpeedColumn()] if unit == "bytes" else []
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        amount,
        *rate,
        progress.TextColumn("{task.fields[aside]}", markup=False),
        progress.TimeRemainingColumn(),
        console=console(errors=True),
        transient=True,
    )


@contextmanager
def steps(*, quiet: bool = False) -> Iterator[Steps]:
    told = Steps(quiet=quiet)
    try:
        yield told
    finally:
        told._clear()


def run_status(run: RunStatus) -> None:
    for line in render_status.one_run(run, colours=_colours()):
        print(harmless(line))


def runs_table(runs: Sequence[RunStatus]) -> None:
    print(harmless("\n".join(render_status.many_runs(runs, colours=_colours()))))


def _colours() -> bool:
    """As https://no-color.org asks, and only where a person looks."""
    plain_wanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain_wanted


def _table(
    rows: Iterable[Sequence[object]], headings: Sequence[str] = (), right: Sequence[str] = ()
) -> "Table":
    """Columns of plain text: nothing in a name or a pattern is taken for markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="dim",
        show_header=bool(headings),
    )
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, Text) else Text(harmless(str(cell))) for cell in row)
        )
    return table


class Following:
    """Shows a run that is waited for: one line that changes on a terminal, news elsewhere."""

    def __init__(self) -> None:
        self._spinner: Any = None
        self._told: set[tuple[int, str]] = set()
        self._trouble = ""

    def __call__(self, run: RunStatus) -> None:
        for job in run.jobs:
            self._tell(job, "began", f"job {job.number} began, {_origin(job)}")
            if job.how:
                self._tell(
                    job, "ended", f"job {job.number} ended: {render_status.how_it_ended(job)}"
                )
        if run.state is RunState.UNKNOWN and run.reason != self._trouble:
            note(f"note: {run.reason}; asking again")
        self._trouble = run.reason if run.state is RunState.UNKNOWN else ""
        if sys.stderr.isatty():
            self._spin(_one_line(run))

    def _tell(self, job: Job, what: str, text: str) -> None:
        if (job.number, what) not in self._told:
            self._told.add((job.number, what))
            note(text)

    def _spin(self, text: str) -> None:
        from rich.text import Text

        shown = Text(harmless(text))
        if self._spinner is None:
            self._spinner = console(errors=True).status(shown)
            self._spinner.start()
        self._spinner.update(shown)

    def stop(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()


def _origin(job: Job) -> str:
    if job.resumed_from:
        return f"going on from {job.resumed_from}"
    known = job.started_over or not job.checkpoint_found
    return "from the beginning" if known else f"with {job.checkpoint_found} in its folder"


def _one_line(run: RunStatus) -> str:
    last = render_status.steps_of(run.jobs[-1]) if run.jobs else ""
    metrics = ", ".join(render_status.metric(*each) for each in list(run.metrics.items())[:3])
    parts = (
        f"{run.name} {run.state.value}",
        f"job {len(run.jobs)}/{run.jobs_requested}",
        f"steps {last}" if last else "",
        metrics,
    )
    return " · ".join(part for part in parts if part)


def voyage(told: "PlannedRun") -> None:
    """A plan as a table, then the script exactly as it is submitted."""
    plan, spec = told.plan, told.spec
    rows = {
        "run": plan.run,
        "on": f"{plan.origin.cluster} ({plan.origin.scheduler})",
        "command": " ".join([*plan.command, *plan.resume]),
        "data": ", ".join(f"{each.pack} as {each.mode}" for each in plan.datasets) or "none",
        "staged into": _staged_into(plan),
        "code": f"snapshot {plan.code[:12]}",
        "jobs": _jobs(told),
        "asked to save": f"{say_duration(spec.warn_before)} before the limit, by {plan.signal}",
        "GPUs": f"{spec.resources.gpus} {spec.resources.gpu_model}".strip(),
        "checkpoints": " ".join(plan.patterns),
        "secrets": " ".join(plan.secrets),
        "kept": " ".join(plan.keep),
        "results": f"{spec.folder.removesuffix('/logs')}/output, whether or not it succeeds",
    }
    console().print(_table((name, text) for name, text in rows.items() if text))
    data(f"\n# {'-' * 30} job.sh {'-' * 30}\n{told.script}")


def _jobs(told: "PlannedRun") -> str:
    """How many are queued, and how many there may be."""
    from rabaska.node.record.chain_rule import limit

    jobs, plan = told.spec.jobs, told.plan
    each = say_duration(told.spec.resources.walltime)
    most = limit(plan, []) if plan.growth.words else jobs
    more = f", and more as needed, {most} at most" if most > jobs else ""
    return f"up to {jobs} of {each}{more}"


def _staged_into(plan: "Plan") -> str:
    """The tiers of a node in the order in which the agent tries them."""
    local = plan.request.local or "a temporary folder of the node"
    if not plan.datasets:
        return ""
    return f"{plan.nearby.memory} if they fit, else {local}" if plan.nearby.memory else local


def proposal(told: "Proposal", target: "Path") -> None:
    """What `init` guessed, and from what."""
    rows = [(guess.what, guess.value, guess.evidence) for guess in told.guesses]
    console().print(_table(rows, ("guessed", "", "from")))
    for warning in told.warnings:
        note(f"note: {warning}")
    note(f"wrote {target}; read it, then `rabaska run`")


def clusters_table(known: "Sequence[Cluster]") -> None:
    rows = [(each.name, each.scheduler, each.host or "this computer", each.title) for each in known]
    console().print(_table(rows, ("cluster", "scheduler", "host", "")))


def comparison(lines: "Sequence[ProfileFact]") -> None:
    """A profile held against its cluster."""
    colours = {"ok": "green", "differs": "red", "cannot be told": "yellow"}
    told = columns(
        [
            (Painted(each.verdict, colours[each.verdict]), each.key, each.says, each.found)
            for each in lines
        ],
        ("", "key", "the profile says", "the cluster says"),
        colours=sys.stdout.isatty(),
    )
    data("\n".join(told))


def site(told: "Added") -> None:
    """What a new profile was written from."""
    found = told.site
    gpus = {f"{each.gpus} x {each.gpu_model}" for each in found.partitions if each.gpus}
    untried = "the first run tries it, or `--probe` now"
    internet = {True: "yes", False: "no", None: untried}[found.internet]
    rows = {
        "scheduler": f"{found.scheduler} ({found.version})" if found.version else found.scheduler,
        "partitions": ", ".join(each.name for each in found.partitions),
        "GPUs per node": ", ".join(sorted(gpus)),
        "accounts": ", ".join(found.accounts or ()),
        "Python": ", ".join(f"{name} ({version})" for name, version in found.pythons.items()),
        "modules": f"{len(found.modules)} seen" if found.modules else "",
        "wheelhouse": ", ".join(found.wheelhouse),
        "storage": ", ".join(f"{name}={path}" for name, path in found.variables.items()),
        "internet on nodes": internet,
    }
    console().print(_table((name, text) for name, text in rows.items() if text))
    for sentence in told.notes:
        note(f"note: {sentence}")
    note(f"wrote {told.file}; read it, then `rabaska run --on {told.cluster.name}`")
