"""One line that a training program printed: its step, epoch and metrics."""

import functools
import re
from typing import Any, Dict, NamedTuple, Optional, Pattern, Tuple

LONGEST_LINE = 4096  # characters of a line that are looked at
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?"
# "step 12", "global_step=12", "'step': 12", "Iteration 560", "iter: [12/500]"; the plural names
# how many there will be: "steps=1000", "Num Epochs = 3"
STEP = re.compile(
    r"(?<![a-z_])(?:global[_ ]?step|train[_ ]?step|step|iteration|iter|update|num_updates"
    r"|total_timesteps)['\"]?\s*[:=#|]?\s*[\[(]?\s*(\d{1,15})(?![\d.]*[a-z%])",
    re.IGNORECASE,
)
# "Epoch 3/10", "epoch: 3", "[Epoch 3]", "'epoch': 1.25", "'epoch': '1.25'", "Epoch: [3][20/500]";
# "steps per epoch = 638" is a length, and "{epoch:03d}" is how a file will be named
EPOCH = re.compile(
    r"(?<![a-z_])(?<!per )(?<!each )(?<!every )epoch(['\"]?)\s*[:=#|]?\s*[\[('\"]?\s*"
    r"(\d{1,9}(?:\.\d{1,9})?)(?![\d.]*[a-z]\})",
    re.IGNORECASE,
)
# " 40/100 [00:02<00:03": tqdm, Keras; "[20/500]" of the ImageNet example
BAR = re.compile(r"\b(\d{1,12})/(\d{1,12})\s*(?=[\[━])|\[\s*(\d{1,12})/(\d{1,12})\]")
# "Epoch 7/7 ━━━━ 20/100 0:00:02 •": rich, whose bar comes before its numbers
RICH_BAR = re.compile(r"[━╸╺]\s*(\d{1,12})/(\d{1,12})\s+\d+:\d\d:\d\d")
# "[3/25][20/782]": an epoch, and a batch of it
PAIR = re.compile(r"\[\s*(\d{1,9})/\d{1,9}\]\s*\[\s*\d{1,12}/\d{1,12}\]")
# Bars that count something else, and lines that tell where the program took up its work.
OTHER_BAR = re.compile(r"valid|test|eval|sanity|predict|download", re.IGNORECASE)
LOOKING_BACK = re.compile(
    r"resum|restor|\bload|continu|(start\w*|from) checkpoint|\bNamespace\("
    r"|^\s*usage: |\berror: (unrecognized|the following|argument |ambiguous|no such option)",
    re.IGNORECASE,
)
# "epoch=7-step=800.ckpt": the numbers in a file's name are not those of this line
SUFFIX = r"\.(?:ckpt|pth?|tar|bin|npz|pkl|h5|keras|safetensors|json)\b"
NAMES_FILE, FILE = re.compile(SUFFIX), re.compile(r"[\w./=+@%~-]{1,300}" + SUFFIX)
METRIC = re.compile(
    r"(?<![\w.])['\"]?([A-Za-z][\w./@-]{0,40}?)['\"]?\s*(?:[:=|]\s*|\s+)[('\"]?("
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
# And none of these: "lr_decay_iters", "iou_thres" and "loss_weight" are settings.
SETTING_WORDS = {
    "decay",
    "iters",
    "thres",
    "thresh",
    "threshold",
    "warmup",
    "steps",
    "epochs",
    "weight",
    "interval",
    "scheduler",
    "patience",
    "smoothing",
}
ARGUMENTS = re.compile(r"\bNamespace\(|^\s*Overriding|\barguments\b|^\s*usage: ", re.IGNORECASE)
Finite = Dict[str, float]
Found = Dict[str, Optional[float]]  # None: not finite, which JSON does not know


class PrintedLine(NamedTuple):
    kind: int  # 3: a named step, 2: a bar, 1: an epoch, 0: no step
    step: Optional[int]
    epoch: Optional[float]
    metrics: Found


NOTHING = PrintedLine(0, None, None, {})


def read_by_pattern(line: str, own: Pattern[str]) -> PrintedLine:
    found = own.search(line)
    if found is None:
        return NOTHING
    named = found.groupdict()
    first = found.group(1) if own.groups and not named else None
    step, epoch = _number(named.get("step") or first), _number(named.get("epoch"))
    if step is None:
        step = epoch
    return NOTHING if step is None else PrintedLine(3, int(step), epoch, {})


def without_files(line: str) -> str:
    """The line, without the names of files that hold a state."""
    return FILE.sub("", line) if NAMES_FILE.search(line) else line


def read_line(line: str, epoch_before: Optional[float], first_epoch: int = 0) -> PrintedLine:
    line = without_files(line)
    quoted, epoch = epoch_in(line)
    step, bar = STEP.search(line), _bar(line)
    if (step is None and bar is None and epoch is None) or LOOKING_BACK.search(line):
        return NOTHING
    if step is not None:
        return PrintedLine(3, int(step.group(1)), epoch, {})
    # A quoted epoch comes from the Trainer of Hugging Face, whose bar spans all epochs.
    current = epoch_before if epoch is None or quoted else epoch
    if bar is not None and current is not None and not quoted:
        over = max(0, int(current) - first_epoch)
        return PrintedLine(2, over * bar[1] + bar[0], epoch, {})
    return NOTHING if epoch is None else PrintedLine(1, int(epoch), epoch, {})


def epoch_in(line: str) -> Tuple[bool, Optional[float]]:
    """Whether the word is quoted, as in a dictionary, and the epoch."""
    found = EPOCH.search(line)
    if found is not None:
        return bool(found.group(1)), _number(found.group(2))
    pair = PAIR.search(line)
    return False, None if pair is None else _number(pair.group(1))


def _bar(line: str) -> Optional[Tuple[int, int]]:
    """How far a progress bar is, and its length."""
    found = list(RICH_BAR.finditer(line)) or list(BAR.finditer(line))
    epoch = EPOCH.search(line)
    if epoch is not None:  # "Epoch 3/10 [20/500]": the first two are epochs
        found = [bar for bar in found if bar.start(1) != epoch.start(2)]
    if not found or OTHER_BAR.search(line):
        return None
    done, total = [int(number) for number in found[-1].groups() if number is not None]
    return (done, total) if done <= total and total > 1 else None


def metrics_in(line: str) -> Found:
    found = {}  # type: Found
    if ARGUMENTS.search(line):
        return found
    for name, value in METRIC.findall(line):
        if is_metric_name(name):
            found[name] = _number(value)
    return found


@functools.lru_cache(maxsize=1024)
def is_metric_name(name: str) -> bool:
    words = re.split(r"[^a-z0-9]+", name.lower())
    return not METRIC_WORDS.isdisjoint(words) and SETTING_WORDS.isdisjoint(words)


def _number(text: Any) -> Optional[float]:
    """A finite number, or None: JSON knows neither NaN nor infinity."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < 1e300 else None
