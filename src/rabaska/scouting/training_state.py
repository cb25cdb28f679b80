"""What of a training has state, as its source tells, and what of it a checkpoint holds."""

import ast
import hashlib
import json
import pickletools
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from rabaska.domain.rehearsal import Saved, Used
from rabaska.node.checkpoints import commit
from rabaska.scouting.source import Source, argument, called, last_word, literal

# Words that only stand in the state of that thing, as PyTorch, Lightning and Keras spell them.
_OPTIMIZER = re.compile(r"^(param_groups|optimizer_states?|optimizer|exp_avg|momentum_buffer)$")
_SCHEDULER = re.compile(r"^(lr_schedulers?|scheduler|base_lrs|_last_lr|_step_count)$")
_RANDOM = re.compile(r"rng|random|^generators$", re.I)
_LARGEST = 64 << 20  # bytes of a pickle or a JSON text; the tensors lie beside it
_CHUNK = 1 << 20


def saved(path: Path) -> Saved:
    """What the checkpoint `path` holds, together with what was saved beside it in its folder."""
    words: set[str] = set()
    for file in _files(path):
        words |= set(_words(file))
    return Saved(
        readable=bool(words),
        optimizer=any(_OPTIMIZER.search(word) for word in words),
        scheduler=any(_SCHEDULER.search(word) for word in words),
        random=any(_RANDOM.search(word) for word in words),
    )


def _files(path: Path) -> list[Path]:
    """A checkpoint may be a folder, or one of several files that were saved together."""
    if path.is_dir():
        return [file for file in path.iterdir() if file.is_file()]
    since = path.stat().st_mtime - 1.0
    beside = (file for file in path.parent.iterdir() if file.is_file() and file != path)
    return [path, *(file for file in beside if file.stat().st_mtime >= since)]


def _words(path: Path) -> Iterator[str]:
    """Every name in a file that is a zip of PyTorch, a pickle or a JSON text."""
    yield path.stem  # optimizer.pt, scheduler.pt and rng_state.pth, as Hugging Face names them
    try:
        if zipfile.is_zipfile(path):
            yield from _words_of_zip(path)
        elif path.suffix == ".json":
            yield from _keys(json.loads(path.read_bytes()))
        else:
            with path.open("rb") as stream:
                yield from _words_of_pickle(stream)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return  # cut short or of another kind: what was read so far counts


def _words_of_zip(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            yield Path(member.filename).stem
            if member.filename.endswith(".pkl") and member.file_size < _LARGEST:
                with archive.open(member) as stream:
                    yield from _words_of_pickle(stream)


def _words_of_pickle(stream: IO[bytes]) -> Iterator[str]:
    """The texts of a pickle, by its instructions: none of them is carried out."""
    for _, value, _ in pickletools.genops(stream):
        if isinstance(value, str) and len(value) < 100:
            yield value


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            yield from _keys(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _keys(inside)


def tensors(path: Path) -> dict[str, str] | None:
    """A digest of each tensor in a checkpoint, by its name in the file; None: not known."""
    if path.is_dir():
        manifest = commit.manifest_of(str(path))
        parts = commit.parts_of(manifest) if manifest else []
        return {part.name: str(part.sums) for part in parts if part.name.endswith(".safetensors")}
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if re.search(r"/data/\d+$", name)]
        return {name.partition("/")[2]: _digest(archive.open(name)) for name in names} or None


def _digest(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    with stream:
        while piece := stream.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()


# SGD without momentum has no state of its own.
_OPTIMIZERS = re.compile(
    r"^(Adam|AdamW|Adamax|NAdam|RAdam|Adagrad|Adadelta|RMSprop|Rprop|LBFGS|LAMB|Lion|Adafactor)$"
)
_SCHEDULERS = re.compile(r"(LR|LRScheduler|WarmRestarts|ReduceLROnPlateau)$|^get_\w*schedule\w*$")
_CHANCE = re.compile(
    r"^([Dd]ropout\w*|Random\w+|ColorJitter|RandAugment|AutoAugment|mixup|cutmix|default_rng)$"
)
# These may also be used once, to make the first weights or data.
_PERHAPS = re.compile(r"^(randn?(_like)?|randint|bernoulli|normal|uniform|random|choice)$")
_SEEDED = re.compile(r"generator|epoch|seed", re.I)


def used(sources: tuple[Source, ...]) -> Used:
    """The first place of each, over all files of the program."""
    return Used(
        optimizer=_first(sources, _has_state),
        scheduler=_first(sources, lambda call: bool(_SCHEDULERS.search(last_word(call)))),
        order=_first(sources, _shuffles),
        random=_first(sources, lambda call: bool(_CHANCE.search(last_word(call))))
        or _first(sources, lambda call: bool(_PERHAPS.search(last_word(call)))),
    )


def _first(sources: tuple[Source, ...], wanted: Callable[[ast.Call], bool]) -> str:
    places = (source.place(call, called(call)) for source, call in _calls(sources) if wanted(call))
    return str(next(places, ""))


def _calls(sources: tuple[Source, ...]) -> Iterator[tuple[Source, ast.Call]]:
    return ((source, call) for source in sources for call in source.calls())


def _has_state(call: ast.Call) -> bool:
    word = last_word(call)
    return bool(_OPTIMIZERS.search(word)) or (word == "SGD" and bool(argument(call, "momentum")))


def _shuffles(call: ast.Call) -> bool:
    """Whether samples are put in an order that depends on a generator nobody gave."""
    if last_word(call) == "DataLoader":
        shuffled = literal(argument(call, "shuffle", 2)) is True
        return shuffled and argument(call, "generator") is None
    if last_word(call) in ("shuffle", "randperm", "permutation", "RandomSampler"):
        return not _SEEDED.search(ast.unparse(call))
    return False
