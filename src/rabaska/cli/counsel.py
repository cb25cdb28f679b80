"""How advice reads: explanations, findings, plans and storage, as lines of text."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rabaska.cli import show

if TYPE_CHECKING:
    from rabaska.checkup.findings import Finding
    from rabaska.journeys.explain import Explanation
    from rabaska.knowledge.failures import Failure

_WIDTH = 98
_LAST_LINES = 12


def explanation(told: "Explanation") -> None:
    """What is known, the likeliest first; a text that nobody foresaw is shown as it is."""
    if told.run:
        show.data(f"run {told.run} on {told.cluster}: {told.state}")
    if told.known:
        show.data("\n\n".join(_one(failure) for failure in told.known[:3]))
        return
    show.data("\n".join(told.text.rstrip().splitlines()[-_LAST_LINES:]))
    show.data("\nNobody has explained this to rabaska yet.")
    if told.nearest:
        show.data("The nearest that is known:\n")
        show.data("\n\n".join(_one(failure) for failure in told.nearest))
    show.data("\nIf that does not help: `--bundle FOLDER` writes what the site's support asks for.")


def findings(found: "Sequence[Finding]", mended: Sequence[str]) -> None:
    """Each with its place, its reason and its remedy; then what was mended."""
    for sentence in mended:
        show.data(f"mended: {sentence}")
    for each in found:
        word = "error" if each.serious else "advice"
        lines = (f"because {each.why}", f"fix: {each.fix}" if each.fix else "")
        show.data(f"{word}: {each.what}\n  {each.where}")
        show.data("\n".join(_wrapped(line) for line in lines if line))
    kinds = [each.serious for each in found]
    told = f"{kinds.count(True)} errors, {kinds.count(False)} pieces of advice"
    show.note(told if found else "nothing was found")


def _one(failure: "Failure") -> str:
    said = [f"> {failure.line[:300]}"] if failure.line else []
    ours = [_wrapped(f"rabaska: {failure.ours}")] if failure.ours else []
    return "\n".join([*said, _wrapped(failure.meaning), _wrapped(f"fix: {failure.fix}"), *ours])


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
