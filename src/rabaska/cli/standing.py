"""How runs stand, as lines for people to read."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rabaska.cli.columns import Painted, columns, painted
from rabaska.cli.outlook import outlook
from rabaska.domain.amounts import say_duration, say_size
from rabaska.domain.runs import Link, RunState, RunStatus, Staged

_NAMED = 5  # files in one line
_COLOURS = {
    RunState.FINISHED: "green", RunState.RUNNING: "cyan", RunState.QUEUED: "blue",
    RunState.STOPPING: "yellow", RunState.FAILED: "red", RunState.CANCELLED: "yellow",
    RunState.INTERRUPTED: "magenta", RunState.UNKNOWN: "magenta", RunState.SUBMITTING: "blue",
    RunState.GONE: "red",
    RunState.SUSPENDED: "yellow",
}  # fmt: skip


def one_run(run: RunStatus, *, colours: bool) -> Iterator[str]:
    """A headline, a row per link, and what to know about a failure."""
    yield from _headline(run, colours=colours)
    if run.links:
        headings = ("job", "id", "on", "took", "ended", "steps", "redone", "from")
        rows = [_link_row(link, run.now) for link in run.links]
        yield from columns(rows, headings, right=("took", "redone"), colours=colours)
    yield from _footnotes(run)
    if run.tail and run.state in (RunState.FAILED, RunState.INTERRUPTED):
        yield painted("\nthe last lines of its log:", "bold", colours=colours)
        yield from (f"  │ {line.rpartition(chr(13))[2]}" for line in run.tail.splitlines())
    for meaning, fix in run.explanations:
        yield f"\n{painted('what it means:', 'bold', colours=colours)} {meaning}"
        yield f"{painted('what to do:', 'bold', colours=colours)} {fix}"


def many_runs(runs: Sequence[RunStatus], *, colours: bool) -> list[str]:
    headings = ("run", "on", "state", "links", "last", "why")
    return columns([_run_row(run) for run in runs], headings, colours=colours)


def how_it_ended(link: Link) -> str:
    over = "started over; " if link.started_over else ""
    if not link.how:
        return f"{over}running"
    if link.signal:
        return f"{over}{link.how} (signal {link.signal})"
    return f"{over}{link.how} (exit code {link.exit_code})" if link.exit_code else over + link.how


def steps_of(link: Link) -> str:
    if link.last_step is None:
        return "" if link.epoch is None else f"epoch {link.epoch:g}"
    return f"{link.first_step}-{link.last_step}"


def _headline(run: RunStatus, *, colours: bool) -> Iterator[str]:
    name = painted(run.name, "bold", colours=colours)
    state = painted(run.state.value, _COLOURS[run.state], colours=colours)
    yield f"{name} on {run.cluster}  {state}{': ' if run.reason else ''}{run.reason}"
    if run.hint:
        yield f"  hint: {run.hint}"


def _link_row(link: Link, now: float) -> list[object]:
    return [
        link.number, link.id, link.host, _took(link, now), how_it_ended(link), steps_of(link),
        "" if link.steps_redone is None else link.steps_redone,
        origin(link),
    ]  # fmt: skip


def origin(link: Link) -> str:
    """The checkpoint it went on from; said only where its program was given it, or shows it."""
    if link.resumed_from:
        return link.resumed_from.rpartition("/")[2]
    known = link.started_over or not link.checkpoint_found
    return "the beginning" if known else "not known"


def _took(link: Link, now: float) -> str:
    """How long it has run; nothing for a link that was lost, whose end nobody saw."""
    if not link.began or (link.how and not link.ended):
        return ""
    return say_duration(timedelta(seconds=max(0.0, (link.ended or now) - link.began)))


def _run_row(run: RunStatus) -> list[object]:
    last = steps_of(run.links[-1]) if run.links else ""
    state = Painted(run.state.value, _COLOURS[run.state])
    links = run.links_asked + (run.extended.links if run.extended else 0)
    return [run.name, run.cluster, state, f"{len(run.links)}/{links}", last, run.reason]


def _footnotes(run: RunStatus) -> Iterator[str]:
    for dataset in run.data:
        yield f"data: {_staged(dataset)}"
    if run.checkpoint:
        age = say_duration(timedelta(seconds=max(0.0, run.now - run.checkpoint.written)))
        size = say_size(run.checkpoint.size)
        yield f"newest valid checkpoint: {run.checkpoint.path} ({size}, {age} old)"
    yield from outlook(run)
    if run.metrics:
        values = ", ".join(f"{name} {value:g}" for name, value in run.metrics.items())
        yield f"last reported: {values}"
    for link in run.links[-1:]:
        if link.reason and link.reason != run.reason:
            yield f"link {link.number}: {link.reason}"
        if link.beginning_not_known:
            yield f"note: {link.beginning_not_known}"
    if run.left_running:
        counted = "1 process" if run.left_running == 1 else f"{run.left_running} processes"
        yield f"note: ended {counted} that the program left running when it finished"
        yield "  hint: if the training runs in the background, end the script with `wait`"
    if run.not_kept:
        more = ", …" if len(run.not_kept) > _NAMED else ""
        yield f"results that could not be kept: {', '.join(run.not_kept[:_NAMED])}{more}"
    if run.starts_over and run.starts_over not in run.reason:
        yield f"it starts over: {run.starts_over}"
    for problem in (*run.problems, *run.about.get("unmet", ())):
        yield f"note: {problem}"


def _staged(dataset: Staged) -> str:
    told = f"{dataset.name} ({say_size(dataset.bytes)}) {dataset.where}"
    if dataset.arriving:
        return f"{told}, arriving while the program runs"
    if dataset.seconds < 1:
        return told
    return f"{told}, staged in {say_duration(timedelta(seconds=dataset.seconds))}"
