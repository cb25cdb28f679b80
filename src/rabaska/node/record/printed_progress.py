"""Steps, epochs and metrics, read from what a training program prints.

No program is asked to print in a given way; these are the ways programs do print:

    step 400 loss 0.4123                          a student's script
    Epoch: [3][20/500]  Loss 0.41 (0.52)          PyTorch's ImageNet example
    Epoch 3/10 … 45/45 - 1s - loss: 0.41          Keras
    {'loss': 0.5, 'epoch': 1.0}                   Hugging Face Trainer
    Epoch 3:  40%|███  | 40/100 [00:02<, loss=0.4]   Lightning, and tqdm in general
    Iteration 560, loss = 6.69755                 Caffe
    [3/25][20/782] Loss_D: 0.52                   PyTorch's DCGAN example

What counts as a step: a number named step, iteration, batch … ; else the position of a progress
bar counted over its epochs; else the epoch. The three are never compared with each other.
"""

import functools
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Pattern, Tuple

SLICE = 64 * 1024  # bytes read at the head and at the tail of a log
GLANCE = 4 * 1024  # bytes that are tried first: most logs tell a step or an epoch in each line
LONGEST_LINE = 4096  # characters of a line that are looked at
FEW = 40  # last lines that metrics are looked for in

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?"

# "step 12", "global_step=12", "'step': 12", "Iteration 560", "iter: [12/500]"; the plural names
# how many there will be: "steps=1000", "Num Epochs = 3"
STEP = re.compile(
    r"(?<![a-z_])(?:global[_ ]?step|train[_ ]?step|step|iteration|iter|update|num_updates"
    r"|total_timesteps)['\"]?\s*[:=#|]?\s*[\[(]?\s*(\d{1,15})(?![\d.]*[a-z%])",
    re.IGNORECASE,
)
# "Epoch 3/10", "epoch: 3", "[Epoch 3]", "'epoch': 1.25", "Epoch: [3][20/500]"
EPOCH = re.compile(
    r"(?<![a-z_])epoch(['\"]?)\s*[:=#|]?\s*[\[(]?\s*(\d{1,9}(?:\.\d{1,9})?)", re.IGNORECASE
)
# " 40/100 [00:02<00:03": tqdm, Keras; "[20/500]" of the ImageNet example
BAR = re.compile(r"\b(\d{1,12})/(\d{1,12})\s*[\[━]|\[\s*(\d{1,12})/(\d{1,12})\]")
# "[3/25][20/782]": an epoch, and a batch of it
PAIR = re.compile(r"\[\s*(\d{1,9})/\d{1,9}\]\s*\[\s*\d{1,12}/\d{1,12}\]")
# Bars that count something else, and lines that tell where the program took up its work.
OTHER_BAR = re.compile(r"valid|test|eval|sanity|predict|download", re.IGNORECASE)
LOOKING_BACK = re.compile(
    r"resum|restor|\bload|continu|(start\w*|from) checkpoint|\bNamespace\(",
    re.IGNORECASE,
)
METRIC = re.compile(
    r"(?<![\w.])['\"]?([A-Za-z][\w./@-]{0,40}?)['\"]?\s*(?:[:=|]\s*|\s+)\(?("
    + NUMBER
    + r"|[-+]?(?i:nan|inf(?:inity)?))(?![\w/:])"
)
# A name counts as a metric when one of its words is here: logs are full of other numbers.
METRIC_WORDS = {
    "loss",
    "losses",
    "acc",
    "accuracy",
    "top1",
    "top5",
    "acc1",
    "acc5",
    "prec",
    "precision",
    "recall",
    "f1",
    "auc",
    "auroc",
    "map",
    "miou",
    "iou",
    "dice",
    "error",
    "err",
    "wer",
    "cer",
    "bleu",
    "rouge",
    "perplexity",
    "ppl",
    "mse",
    "mae",
    "rmse",
    "r2",
    "psnr",
    "ssim",
    "fid",
    "lr",
    "rate",
    "reward",
    "return",
    "score",
    "nll",
    "bpd",
    "elbo",
    "kl",
}

Finite = Dict[str, float]
Found = Dict[str, Optional[float]]  # None: not finite, which JSON does not know


class PrintedProgress(NamedTuple):
    step: Optional[int]
    epoch: Optional[float]
    metrics: Found


class StepSpan(NamedTuple):
    first_step: Optional[int]
    last_step: Optional[int]
    epoch: Optional[float]  # the last one seen
    metrics: Found  # the last value of each
    every: Optional[int] = None  # steps from one that is printed to the next


class _Line(NamedTuple):
    kind: int  # 3: a named step, 2: a bar, 1: an epoch, 0: no step
    step: Optional[int]
    epoch: Optional[float]
    metrics: Found


NOTHING = _Line(0, None, None, {})


def read(text: str, pattern: str = "") -> PrintedProgress:
    """The last step, the last epoch and the last value of each metric in `text`.

    `pattern` is the user's own regular expression: its groups `step` and `epoch` (or its first
    group, which is then a step) count, and what is built in is not used for either.
    """
    return _last(list(_read_lines(_lines(text), _compiled(pattern))))


def points(text: str, pattern: str = "") -> List[Tuple[int, Finite]]:
    """Every step that `text` tells together with metrics, in its order."""
    lines = _lines(text)
    found = _comparable(list(_read_lines(lines, _compiled(pattern), few=len(lines))))
    told = [(line.step, _finite(line.metrics)) for line in found]
    return [(step, metrics) for step, metrics in told if step is not None and metrics]


def _finite(metrics: Found) -> Finite:
    return {name: value for name, value in metrics.items() if value is not None}


def span(path: str, pattern: str = "", size: int = SLICE) -> StepSpan:
    """The first and last step in a log, from its head and its tail only."""
    own = _compiled(pattern)
    for amount in (min(GLANCE, size), size):
        at_head, at_tail = [list(_read_lines(_lines(end), own)) for end in _ends(path, amount)]
        # Both ends count in the same way: more of the log would say nothing else.
        if _kind(at_head) == _kind(at_tail) > 0:
            break
    lines = _comparable(at_head + at_tail)
    steps = [line.step for line in lines if line.step is not None]
    last = _last(lines)
    first = steps[0] if steps else None
    return StepSpan(first, last.step, last.epoch, last.metrics, _interval(steps))


def numbers(text: str, pattern: str = "") -> List[Tuple[Optional[float], Optional[int]]]:
    """Every epoch and step that `text` tells, in its order; steps of the most exact kind only."""
    lines = _comparable(list(_read_lines(_lines(text), _compiled(pattern), few=0)))
    # An epoch is a step to its own line; who asks for both wants to know it once.
    named = [line if line.kind > 1 else line._replace(step=None) for line in lines]
    return [(line.epoch, line.step) for line in named]


def _interval(steps: List[int]) -> Optional[int]:
    gaps = (steps[place] - steps[place - 1] for place in range(1, len(steps)))
    return min((gap for gap in gaps if gap > 0), default=None)


def _kind(lines: List[_Line]) -> int:
    return max((line.kind for line in lines), default=0)


def _compiled(pattern: str) -> Optional[Pattern[str]]:
    """The user's expression, or None when there is none or it is wrong.

    The laptop refuses a wrong one when it reads rabaska.toml; a node must not fail for it.
    """
    try:
        return re.compile(pattern) if pattern else None
    except (re.error, OverflowError, RecursionError):
        return None


def _ends(path: str, size: int) -> Tuple[str, str]:
    """The first and the last `size` bytes of a file; the second is empty for a short file."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(size)
            length = os.fstat(stream.fileno()).st_size
            if length <= len(head):
                return _text(head), ""
            stream.seek(max(size, length - size))
            return _text(head), _text(stream.read(size))
    except OSError:
        return "", ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _lines(text: str) -> List[str]:
    return re.split(r"[\r\n]+", text)


def _read_lines(lines: List[str], own: Optional[Pattern[str]], few: int = FEW) -> Iterator[_Line]:
    epoch = None  # type: Optional[float]
    for number, raw in enumerate(lines):
        line = raw[:LONGEST_LINE]
        if line.startswith("rabaska: "):
            continue  # our own words, of other jobs perhaps
        found = _read_own(line, own) if own else _read_line(line, epoch)
        if found.epoch is not None and not _epoch(line)[0]:
            epoch = found.epoch
        if number >= len(lines) - few:
            found = found._replace(metrics=_metrics(line))
        if found.kind or found.metrics:
            yield found


def _read_own(line: str, own: Pattern[str]) -> _Line:
    found = own.search(line)
    if found is None:
        return NOTHING
    named = found.groupdict()
    first = found.group(1) if own.groups and not named else None
    step, epoch = _number(named.get("step") or first), _number(named.get("epoch"))
    if step is None:
        step = epoch
    return NOTHING if step is None else _Line(3, int(step), epoch, {})


def _read_line(line: str, epoch_before: Optional[float]) -> _Line:
    quoted, epoch = _epoch(line)
    step, bar = STEP.search(line), _bar(line)
    if (step is None and bar is None and epoch is None) or LOOKING_BACK.search(line):
        return NOTHING
    if step is not None:
        return _Line(3, int(step.group(1)), epoch, {})
    # A quoted epoch comes from the Trainer of Hugging Face, whose bar spans all epochs.
    current = epoch_before if epoch is None or quoted else epoch
    if bar is not None and current is not None and not quoted:
        return _Line(2, int(current) * bar[1] + bar[0], epoch, {})
    return NOTHING if epoch is None else _Line(1, int(epoch), epoch, {})


def _epoch(line: str) -> Tuple[bool, Optional[float]]:
    """Whether the word is quoted, as in a dictionary, and the epoch."""
    found = EPOCH.search(line)
    if found is not None:
        return bool(found.group(1)), _number(found.group(2))
    pair = PAIR.search(line)
    return False, None if pair is None else _number(pair.group(1))


def _bar(line: str) -> Optional[Tuple[int, int]]:
    """How far a progress bar is, and its length."""
    found = list(BAR.finditer(line))
    if not found or OTHER_BAR.search(line):
        return None
    done, total = [int(number) for number in found[-1].groups() if number is not None]
    return (done, total) if done <= total and total > 1 else None


def _metrics(line: str) -> Found:
    found = {}  # type: Found
    for name, value in METRIC.findall(line):
        if _names_a_metric(name):
            found[name] = _number(value)
    return found


@functools.lru_cache(maxsize=1024)
def _names_a_metric(name: str) -> bool:
    return not METRIC_WORDS.isdisjoint(re.split(r"[^a-z0-9]+", name.lower()))


def _number(text: Any) -> Optional[float]:
    """A finite number, or None: JSON knows neither NaN nor infinity."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < 1e300 else None


def _comparable(lines: List[_Line]) -> List[_Line]:
    """The same lines, with steps of the most exact kind only."""
    kind = _kind(lines)
    return [line if line.kind == kind else line._replace(step=None) for line in lines]


def _last(lines: List[_Line]) -> PrintedProgress:
    step, epoch = None, None
    metrics = {}  # type: Found
    for line in _comparable(lines):
        step = line.step if line.step is not None else step
        epoch = line.epoch if line.epoch is not None else epoch
        metrics.update(line.metrics)
    return PrintedProgress(step, epoch, metrics)
