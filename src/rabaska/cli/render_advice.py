"""Advice as lines of text: explanations, findings, plans and storage."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rabaska.cli import terminal
from rabaska.cli.text import columns
from rabaska.domain.amounts import say_duration, say_seconds, say_size

if TYPE_CHECKING:
    from rabaska.checkup.subject import Finding
    from rabaska.domain.clusters import Tier
    from rabaska.domain.stored_items import StoredItem
    from rabaska.journeys.clean import Cleaning
    from rabaska.journeys.explain import Explanation
    from rabaska.journeys.plan import OnePlan, Plans
    from rabaska.journeys.storage import Storage
    from rabaska.knowledge.failures import KnownFailure

_WIDTH = 98
_IN_FULL = 4  # clusters that are told with every reason
TIERS = ("tier", "where", "size", "files", "purged", "backup")
_KEPT = ("kept", "number", "size", "files")
_HEADINGS = ("cluster", "queue", "GPUs", "jobs", "of", "GPU-hours", "start", "because")
_LAST_LINES = 12
_WORTH_A_QUEUE = 1.5  # times as fast as here; less is eaten up by waiting


def explanation(told: "Explanation", *, bundled: bool = False) -> None:
    """What is known, the likeliest first; a text that nobody foresaw is shown as it is."""
    if told.run:
        terminal.data(f"run {told.run} on {told.cluster}: {told.state}")
    if told.known:
        terminal.data("\n\n".join(_one(failure) for failure in told.known[:3]))
        return
    if told.standing:
        terminal.data(told.standing)
        return
    terminal.data("\n".join(told.text.rstrip().splitlines()[-_LAST_LINES:]))
    terminal.data("\nNobody has explained this to rabaska yet.")
    if told.nearest:
        terminal.data("The nearest that is known:\n")
        terminal.data("\n\n".join(_one(failure) for failure in told.nearest))
    if not bundled:
        told_last = "`--bundle FOLDER` writes what the site's support asks for."
        terminal.data(f"\nIf that does not help: {told_last}")


def findings(found: "Sequence[Finding]", mended: Sequence[str]) -> None:
    """Each with its place, its reason and its remedy; then what was mended."""
    for sentence in mended:
        terminal.data(f"mended: {sentence}")
    for each in found:
        word = "error" if each.serious else "warning"
        lines = (f"because {each.why}", f"fix: {each.fix}" if each.fix else "")
        terminal.data(f"{word}: {each.what}\n  {each.where}")
        terminal.data("\n".join(_wrapped(line) for line in lines if line))
    errors = sum(each.serious for each in found)
    told = f"{_counted(errors, 'error')}, {_counted(len(found) - errors, 'warning')}"
    terminal.note(told if found else "nothing was found")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def unasked(cluster: str, why: str) -> None:
    if why:
        terminal.note(f"what is said of {cluster} is from its profile: {why}")


def plans(told: "Plans") -> None:
    """Side by side when there are several; then each choice with its reasons."""
    terminal.note(told.basis)
    if len(told.plans) > 1:
        rows = [_row(each) for each in told.plans]
        terminal.data("\n".join(columns(rows, _HEADINGS, right=("jobs", "GPU-hours"))))
    for each in told.plans if len(told.plans) <= _IN_FULL else ():
        terminal.data("\n".join(_plan(each)))
    for each in told.plans if len(told.plans) <= _IN_FULL else ():
        unasked(each.outlook.cluster, each.unasked)
    for line in _worth_it(told):
        terminal.data(line)


def _row(each: "OnePlan") -> tuple[object, ...]:
    choice = each.outlook.choice
    if choice is None:
        return (each.outlook.cluster, "none", "", "", "", "", "", each.outlook.nearest)
    return (
        each.outlook.cluster,
        choice.queue,
        f"{choice.nodes * choice.gpus} {choice.gpu}".strip(),
        choice.jobs,
        say_duration(choice.walltime),
        f"{choice.gpu_hours:g}",
        each.start,
        "; ".join(choice.reasons[:2]),
    )


def _worth_it(told: "Plans") -> Iterator[str]:
    """Should you do it? What was measured here, against what was measured there."""
    here = {each.unit: each for each in told.measured if each.cluster == "here"}
    for each in told.measured:
        yield f"measured  {each.cluster}: {say_seconds(each.seconds)} per {each.unit} ({each.run})"
        base = here.get(each.unit)
        if base and each.cluster != "here":
            times = base.seconds / each.seconds
            word = "yes" if times >= _WORTH_A_QUEUE else "hardly"
            yield f"          should you do it? {word}: {times:.2g} times as fast as here"


def _plan(each: "OnePlan") -> list[str]:
    choice = each.outlook.choice
    lines = ["", f"{each.outlook.cluster}: {each.title}"]
    if each.farewell:
        lines.append(_wrapped(each.farewell))
    if choice is None:
        return [*lines, _wrapped(f"no queue can do it; {each.outlook.nearest}")]
    nodes = f"{choice.nodes} nodes, each " if choice.nodes > 1 else ""
    asks = [f"{choice.gpus} {choice.gpu.upper()}" if choice.gpus else "no GPU"]
    asks += [f"{choice.cores} cores"] if choice.cores else []
    asks += [say_size(choice.memory)] if choice.memory else []
    units = f", {choice.unit_hours:g} reference unit hours" if choice.unit_hours else ""
    lines += [
        f"  queue    {choice.queue}: {'; '.join(choice.reasons)}",
        f"  ask for  {nodes}{', '.join(asks)}",
        f"  jobs     {choice.jobs} of {say_duration(choice.walltime)}",
        f"  cost     {choice.gpu_hours:g} GPU-hours{units}",
    ]
    lines += [f"  start    {each.start}"] if each.start else []
    for data in each.data:
        lines.append(f"  data     {data.dataset}: {data.read}, {data.why}")
        lines += [f"           {data.stripe}"] if data.stripe else []
    lines += [f"  not      {no.queue}: {'; '.join(no.reasons)}" for no in each.outlook.rejected]
    return lines


def storage(told: "Storage") -> None:
    """The tiers, what is kept, and what the site says of the quota."""
    if told.tiers:
        terminal.data("\n".join(columns(map(tier_row, told.tiers), TIERS, right=("size", "files"))))
        terminal.data("")
    rows = [
        (kind, len(each), say_size(sum(one.size for one in each)), sum(one.files for one in each))
        for kind, each in _by_kind(told.kept).items()
    ]
    terminal.data(
        "\n".join(columns(rows, _KEPT, right=_KEPT[1:])) if rows else "nothing is kept yet"
    )
    terminal.note(f"in {told.store}, {say_size(told.free)} free on its file system")
    if told.purge and told.purge != "never":
        first = f"; the oldest of it may go on {told.first_purge}" if told.first_purge else ""
        terminal.note(f"the site deletes what lies there: {told.purge}{first}")
    if told.quota:
        terminal.data(f"\n{told.quota}")


def tier_row(tier: "Tier") -> tuple[object, ...]:
    backup = {True: "yes", False: "no", None: ""}[tier.backup]
    size = say_size(tier.size) if tier.size else ""
    return (tier.name, tier.path, size, f"{tier.files:,}" if tier.files else "", tier.purge, backup)


def _by_kind(kept: "Sequence[StoredItem]") -> "dict[str, list[StoredItem]]":
    found: dict[str, list[StoredItem]] = {}
    for each in kept:
        found.setdefault(each.kind, []).append(each)
    return found


def cleaning(told: "Cleaning", *, preview: bool) -> None:
    things = told.unneeded if preview else told.removed
    rows = [(each.path, say_size(each.size), each.files) for each in things]
    if rows:
        terminal.data("\n".join(columns(rows, ("", "size", "files"), right=("size", "files"))))
    total = say_size(sum(each.size for each in things))
    if not things:
        terminal.note("there is nothing that no run needs")
    elif preview:
        terminal.note(
            f"{total} are needed by no run; `rabaska clean --on {told.cluster} --yes` deletes it"
        )
    else:
        terminal.note(f"{total} deleted")


def _one(failure: "KnownFailure") -> str:
    said = [f"> {failure.line[:300]}"] if failure.line else []
    ours = [_wrapped(f"rabaska: {failure.ours}")] if failure.ours else []
    return "\n".join([*said, _wrapped(failure.meaning), _wrapped(f"fix: {failure.fix}"), *ours])


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
