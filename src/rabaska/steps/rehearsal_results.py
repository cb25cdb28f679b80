"""What the runs of a rehearsal left behind: losses, checkpoints, and how each job was cut."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rabaska.domain.rehearsal import Course, Curve, Interrupted, Stretch
from rabaska.domain.runs import RECOGNISED
from rabaska.errors import CommandFailed
from rabaska.node.checkpoints import newest_checkpoint
from rabaska.node.record import chain_rule, events, jobs, plan, printed_progress
from rabaska.node.record.run_folder import RunFolder
from rabaska.scouting import training_state

_METRICS = "metrics.jsonl"  # of a session, which also tells where it went on
_COUNTERS = ("step", "epoch")
_WENT_ON = re.compile(r"^rabaska: continuing after step (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Left:
    """A run that is over, as its files tell it on this computer."""

    folder: RunFolder
    carried: Path

    @property
    def plan(self) -> plan.Plan:
        found = plan.load(self.folder)
        if found is None:
            raise CommandFailed(f"{self.folder.plan} is missing", hint="rehearse it again")
        return found

    @property
    def finished(self) -> bool:
        return Path(self.folder.done).exists()

    def log(self, job: int) -> str:
        try:
            return Path(self.folder.log(job)).read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""  # it ended before its program began

    def newest(self) -> Path | None:
        found = newest_checkpoint.newest_valid(
            str(self.carried), self.plan.patterns, set_aside=False
        )
        return self.carried / found.path if found else None


def curves(left: Left) -> list[Curve]:
    """The losses of each job, by step; the same for the same training, whatever it prints."""
    numbers = left.folder.jobs()
    logged = _logged(left.carried / "output" / _METRICS)
    if not logged:
        return [_printed(left.log(job), left.plan.progress) for job in numbers]
    begins = [_went_on_after(left.log(job)) for job in numbers]
    ends = [*begins[1:], max(logged)]
    return [
        {step: loss for step, loss in logged.items() if begin < step <= end}
        for begin, end in zip(begins, ends, strict=True)
    ]


def _printed(log: str, pattern: str) -> Curve:
    found: dict[int, float] = {}
    for step, metrics in printed_progress.points(log, pattern):
        loss = _loss(metrics)
        if loss is not None:
            found.setdefault(step, loss)  # the training's own comes before that of an evaluation
    return found


def _loss(metrics: Mapping[str, float]) -> float | None:
    named = [value for name, value in metrics.items() if "loss" in name.lower()]
    others = (value for name, value in metrics.items() if name.lower() not in ("lr", "rate"))
    return named[0] if named else next(others, None)


def _logged(path: Path) -> Curve:
    found: dict[int, float] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            told = json.loads(line)
            loss = _loss({name: value for name, value in told.items() if name not in _COUNTERS})
            if loss is not None:
                found[told["step"]] = loss
    return found


def _went_on_after(log: str) -> int:
    found = _WENT_ON.search(log)
    return int(found[1]) if found else 0


def course(left: Left) -> Course:
    """How an uninterrupted run went."""
    steps = sorted({step for curve in curves(left) for step in curve})
    began, ended = jobs.read_begun(left.folder, 1), jobs.read_ended(left.folder, 1)
    took = ended.ended - began.begun if began and ended else 0.0
    return Course(steps, timedelta(seconds=took), finished=left.finished)


def interrupted(left: Left, reference: Left) -> Interrupted:
    stretches = tuple(_stretches(left))
    return Interrupted(left.folder.name, stretches, _same_end(left, reference))


def _stretches(left: Left) -> Iterator[Stretch]:
    said = list(events.read(left.folder))
    cuts, damaged_before = left.plan.cuts, False
    for number, curve in zip(left.folder.jobs(), curves(left), strict=True):
        begun, ended = jobs.read_begun(left.folder, number), jobs.read_ended(left.folder, number)
        mine = {event["event"]: event for event in said if event.get("job") == number}
        lost = "" if damaged_before else mine.get("checkpoint damaged", {}).get("path", "")
        damaged_before = "damaged for the rehearsal" in mine
        cut_off = number <= len(cuts) and ended is not None and ended.how == chain_rule.KILLED
        yield Stretch(
            job=number,
            curve=curve,
            how=cuts[number - 1].how if cut_off else "",
            resumed_from=begun.checkpoint_seen["path"] if begun and begun.checkpoint_seen else "",
            saved=bool(ended and ended.checkpoint) or damaged_before,
            lost=lost,
            damaged=damaged_before,
            failed=_last_words(left.log(number))
            if ended and ended.how in (chain_rule.CRASHED, *RECOGNISED)
            else "",
        )


def _last_words(log: str) -> str:
    lines = log.strip().splitlines()
    return lines[-1].strip() if lines else "without a word"


def _same_end(left: Left, reference: Left) -> bool | None:
    """Whether both ended with the same tensors; None when they did not both end, or none shows."""
    ends = left.newest(), reference.newest()
    if not (left.finished and reference.finished and all(ends)):
        return None
    mine, theirs = (training_state.tensors(end) for end in ends if end)
    return None if mine is None or theirs is None else mine == theirs
