"""What a script writes: its checkpoints, and what it leaves beside its code."""

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from rabaska.scouting.source import (
    UNKNOWN,
    Source,
    SourceLine,
    argument,
    called,
    fixed_folder,
    is_inside,
    last_word,
    literal,
    path_of,
)

# What is called → where its path stands: (keyword, position).
_SAVERS = {
    "torch.save": ("f", 1),
    "np.savez": ("file", 0),
    "numpy.savez": ("file", 0),
    "np.savez_compressed": ("file", 0),
    "np.save": ("file", 0),
    "numpy.save": ("file", 0),
    "joblib.dump": ("filename", 1),
    "pickle.dump": ("file", 1),
    "save_file": ("filename", 1),
    "safetensors.torch.save_file": ("filename", 1),
    "jnp.save": ("file", 0),
}
_SAVING_METHODS = {
    "save": ("filepath", 0),
    "save_weights": ("filepath", 0),
    "save_model": ("filepath", 0),
    "save_checkpoint": ("filepath", 0),
    "save_pretrained": ("save_directory", 0),
}
_MODEL_WORDS = re.compile(r"model|net|trainer|accelerator|classifier|agent|saver|fabric", re.I)
# Loggers and callbacks → (keyword, position, the folder they choose by themselves).
_FOLDERS = {
    "SummaryWriter": ("log_dir", 0, "runs"),
    "ModelCheckpoint": ("filepath", 0, ""),
    "TensorBoardLogger": ("save_dir", 0, ""),
    "CSVLogger": ("save_dir", 0, ""),
    "BackupAndRestore": ("backup_dir", 0, ""),
    "TensorBoard": ("log_dir", 0, "logs"),
}
_LOADERS = {
    "torch.load",
    "np.load",
    "numpy.load",
    "joblib.load",
    "pickle.load",
    "load_model",
    "load_weights",
    "load_from_checkpoint",
    "restore",
    "load_checkpoint",
    "load_file",
}
_HUGGING_FACE = {"TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig"}
_FOLDER = "checkpoint-*"  # its Trainer makes one for each save
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,10}(\.tar|\.gz)?$")
_STATE_AS_TEXT = re.compile(r"(?:^|/)(?:checkpoint|ckpt)[^/]*\.json$")
_NOT_FOR_CONTINUING = re.compile(r"best|final|export|pred|embed|feature", re.I)


@dataclass(frozen=True)
class Write:
    """A path the script writes, as far as it is known."""

    path: str  # `checkpoints/epoch-*.pt`
    place: SourceLine
    checkpoint: bool  # a saved state, rather than a log
    options: frozenset[str] = frozenset()  # the options its path comes from
    repeated: bool = False  # by a framework, after each epoch or some steps


@lru_cache(maxsize=500)  # scripts share the files that they import
def writes(source: Source) -> tuple[Write, ...]:
    return tuple(sorted(_writes(source), key=lambda write: write.place.line))


def _writes(source: Source) -> Iterator[Write]:
    for call in source.calls():
        name, word = called(call), last_word(call)
        if name in _SAVERS:
            yield _saved(call, argument(call, *_SAVERS[name]), source)
        elif word in _SAVING_METHODS and _MODEL_WORDS.search(name.rpartition(".")[0]):
            yield _saved(call, argument(call, *_SAVING_METHODS[word]), source)
        elif word in _FOLDERS:
            yield from _logged(call, source)
        elif name in ("wandb.init", "mlflow.start_run"):
            folder = "wandb" if name == "wandb.init" else "mlruns"
            yield Write(folder + "/*", source.place(call, name), checkpoint=False)
        elif name in ("pl.Trainer", "L.Trainer", "lightning.Trainer", "pytorch_lightning.Trainer"):
            yield from _lightning(call, source)
        elif name == "open" and _opened_to_write(call):
            given = argument(call, "file", 0)
            path, place = path_of(given, source), source.place(call, "open")
            if _STATE_AS_TEXT.search(path):
                yield Write(path, place, checkpoint=True, options=used(given, source))
            elif "/" in path:
                yield Write(path, place, checkpoint=False)
        elif name == "Trainer" and _imports(source, "lightning"):
            yield from _lightning(call, source)
        elif word in _HUGGING_FACE and _imports(source, "transformers"):
            given = argument(call, "output_dir", 0)
            path = f"{path_of(given, source)}/{_FOLDER}"
            place = source.place(call, word)
            yield Write(path, place, True, options=used(given, source), repeated=True)


def _saved(call: ast.Call, where: ast.expr | None, source: Source) -> Write:
    path = path_of(where, source)
    if "savez" in called(call) and not path.endswith((".npz", UNKNOWN)):
        path += ".npz"  # as numpy itself does
    elif called(call).endswith("np.save") and not path.endswith((".npy", UNKNOWN)):
        path += ".npy"
    return Write(
        path, source.place(call, called(call)), checkpoint=True, options=used(where, source)
    )


def _logged(call: ast.Call, source: Source) -> Iterator[Write]:
    keyword, position, usual = _FOLDERS[last_word(call)]
    given = argument(call, "dirpath") or argument(call, keyword, position)
    if given is None and not usual:
        return
    path = usual + "/*" if given is None else path_of(given, source)
    path = re.sub(r"\{[^}]*\}", UNKNOWN, path)  # Keras and Lightning fill in {epoch:02d} themselves
    keeps_state = last_word(call) == "ModelCheckpoint"
    if not _SUFFIX.search(path) and not path.endswith(UNKNOWN):
        path += "/*.ckpt" if keeps_state else "/*"
    place = source.place(call, last_word(call))
    yield Write(path, place, keeps_state, options=used(given, source), repeated=keeps_state)


def _lightning(call: ast.Call, source: Source) -> Iterator[Write]:
    if literal(argument(call, "enable_checkpointing")) is False:
        return
    given = argument(call, "default_root_dir")
    path = "lightning_logs" if given is None else path_of(given, source)
    place = source.place(call, "Trainer")
    yield Write(path + "/*.ckpt", place, True, options=used(given, source), repeated=True)


def _opened_to_write(call: ast.Call) -> bool:
    mode = argument(call, "mode", 1)
    return isinstance(mode, ast.Constant) and str(mode.value)[:1] in ("w", "a", "x")


def _imports(source: Source, part: str) -> bool:
    return any(part in module for module in imported(source))


def imported(source: Source) -> set[str]:
    """The dotted names of what a script imports, with a dot in front for relative ones."""
    modules = set()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            modules |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return modules


def used(node: ast.AST | None, source: Source) -> frozenset[str]:
    """The options an expression is made of: `args.out`, `FLAGS.out`, or a variable from them."""
    if node is None:
        return frozenset()
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            names.add(inner.attr)
        elif isinstance(inner, ast.Name):
            names |= {inner.id, *_assigned_from(inner.id, source)}
    return frozenset(names)


def _assigned_from(name: str, source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Assign) and any(called(each) == name for each in node.targets):
            for each in ast.walk(node.value):
                if isinstance(each, ast.Attribute):
                    yield each.attr
                elif isinstance(each, ast.Name):
                    yield each.id


def loads(source: Source) -> frozenset[str]:
    """The options whose value the script loads a saved state from."""
    options: frozenset[str] = frozenset()
    for call in source.calls():
        if called(call) in _LOADERS or last_word(call) in _LOADERS:
            options |= used(call.args[0] if call.args else None, source)
        elif last_word(call) in ("fit", "train"):
            resume = argument(call, "ckpt_path") or argument(call, "resume_from_checkpoint")
            options |= used(resume, source)
    return options


def patterns(writes: tuple[Write, ...]) -> dict[str, SourceLine]:
    """The file name patterns of the checkpoints among `found`, each with where it was seen."""
    named: dict[str, SourceLine] = {}
    for write in writes:
        name = write.path.rpartition("/")[2]
        if write.checkpoint and (name == _FOLDER or _SUFFIX.search(name)):
            named.setdefault(name, write.place)
    if any(write.checkpoint and write.path == UNKNOWN for write in writes):
        # Others have names that cannot be read: any of the common ones may be theirs.
        return {name: place for name, place in named.items() if name == _FOLDER}
    to_continue = {name: place for name, place in named.items() if not _only_a_result(name)}
    return to_continue or named


def _only_a_result(name: str) -> bool:
    return bool(_NOT_FOR_CONTINUING.search(name)) or name.endswith((".npy", ".json"))


def kept(writes: tuple[Write, ...], *, chosen: Collection[str] = ()) -> dict[str, SourceLine]:
    """What the script leaves at fixed places beside its code: folders, or single files.

    What comes from one of the options in `chosen` is written where the command says.
    """
    places: dict[str, SourceLine] = {}
    for write in writes:
        if not is_inside(write.path) or write.options.intersection(chosen):
            continue
        folder = fixed_folder(write.path).split("/")[0]
        if folder:
            places.setdefault(folder, write.place)
        elif write.checkpoint and UNKNOWN not in write.path:
            places.setdefault(write.path.removeprefix("./"), write.place)
    return places


def scattered(writes: tuple[Write, ...]) -> tuple[Write, ...]:
    """Checkpoints with changing names right beside the code: no single path to keep."""
    return tuple(
        write
        for write in writes
        if write.checkpoint
        and "/" not in write.path.removeprefix("./")
        and UNKNOWN in write.path[1:]
        and not write.path.startswith((UNKNOWN, "./"))  # "." is what a parameter has by default
    )
