"""What each option is for: the data, the output, the checkpoint to continue from."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rabaska.scouting.script_options import FLAG, POSITIONAL, VALUE, Option

DATA, OUTPUT, CHECKPOINTS, LOGS, RESUME, SAVE = (
    "data",
    "output",
    "checkpoints",
    "logs",
    "resume",
    "save",
)

_FOLDER = "dir path folder root directory"


def _names(stems: str, endings: str = "") -> set[str]:
    """Each stem alone and with each ending: `out`, `out_dir`, `outdir`."""
    alone = set(stems.split())
    pairs = [(stem, ending) for stem in alone for ending in endings.split()]
    return alone | {f"{a}_{b}" for a, b in pairs} | {f"{a}{b}" for a, b in pairs}


# These need an ending to mean a folder: `--model` is an architecture, `--test` a switch.
_SPLITS = "train val valid validation test eval"
_OWNERS = "saved save_model result exp experiment work run model models job project"
_NAMES = {
    DATA: _names("data dataset datasets image images img imgs input train_data corpus", _FOLDER)
    | (_names(_SPLITS, _FOLDER + " file") - _names(_SPLITS))
    | _names("root imagenet path_to_data data_location"),
    OUTPUT: _names("output outputs out results save", _FOLDER + " file")
    | (_names(_OWNERS, _FOLDER) - _names(_OWNERS))
    | _names("outf save_to save_name model_file default_root_dir"),
    CHECKPOINTS: _names("checkpoints ckpts snapshots", _FOLDER)
    | _names("checkpoint_dir checkpoint_folder checkpoint_root ckpt_dir ckpt_folder snapshot_dir")
    | _names("checkpoint_model_dir")
    | _names("save_checkpoint save_ckpt checkpoint_save ckpt_save weights_dir", _FOLDER),
    LOGS: _names("logs tb tensorboard", _FOLDER) | _names("log_dir logdir log_path log_folder"),
    RESUME: _names("resume resume_from resume_checkpoint resume_from_checkpoint", _FOLDER + " file")
    | _names("resume_ckpt resume_training resume_model resume_weights resume_run auto_resume")
    | _names("load_checkpoint load_ckpt load_state load_snapshot load restore", _FOLDER + " file")
    | _names("restore_checkpoint restore_from load_from load_model load_from_checkpoint reload")
    | _names("continue continue_from continue_train continue_training start_from last_checkpoint")
    | _names("checkpoint ckpt chkpt snapshot", "path file name"),
    SAVE: _names("save_model save_models save_checkpoint save_checkpoints save_ckpt save_weights")
    | _names("save checkpoint checkpointing"),
}
# `data.root`, `trainer.default_root_dir`: the group in front does not change what it is.
_GROUPS = re.compile(r"^(data|dataset|trainer|model|paths?|train|training|general)_(?=\w)")
_A_FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")


@dataclass(frozen=True)
class Usage:
    """How the script uses its options, beside what they are called."""

    saved_to: frozenset[str] = frozenset()
    loaded_from: frozenset[str] = frozenset()
    runs_trainer: bool = False


@dataclass(frozen=True)
class Role:
    """An option and what it is for."""

    what: str
    option: Option


def roles(options: Iterable[Option], usage: Usage) -> tuple[Role, ...]:
    """The options that have one, at most one per role but for data and output."""
    by_role: dict[str, list[Option]] = {}
    for option in options:
        what = role_of(option, usage)
        if what:
            by_role.setdefault(what, []).append(option)
    resumes = sorted(by_role.get(RESUME, []), key=lambda each: _resume_rank(each, usage))
    by_role[RESUME] = resumes[:1]
    by_role[CHECKPOINTS] = by_role.get(CHECKPOINTS, [])[:1]
    by_role[LOGS] = by_role.get(LOGS, [])[:1]
    return tuple(Role(what, option) for what, each in by_role.items() for option in each)


def role_of(option: Option, usage: Usage) -> str:
    """The role of one option, or ""."""
    if option.number or option.choices:
        return ""
    name = option.name
    if "." in option.spelled:
        last = option.spelled.rpartition(".")[2].replace("-", "_").lower()
        name = last if "_" in last else _GROUPS.sub("", option.name)
    if option.truth:
        return RESUME if _is(RESUME, name) and not _is(SAVE, name) else ""
    if option.kind == FLAG:
        if _is(SAVE, name):
            return SAVE
        return RESUME if _is(RESUME, name) and not name.startswith(("no_", "load_model")) else ""
    if _is(DATA, name) and not _names_a_dataset(option, name):
        return DATA
    if _is(CHECKPOINTS, name):
        return CHECKPOINTS
    if _is(RESUME, name):
        return _saved_or_loaded(option, name, usage)
    if _is(LOGS, name):
        return LOGS
    if _is(OUTPUT, name) or (name in usage.saved_to and _looks_like_a_path(option)):
        return OUTPUT if _output_is_likely(option, usage) else ""
    return ""


def saves_each(option: Option) -> str:
    """`epoch`, for an option that must say how often to save: it saves nothing unless told."""
    asked = re.fullmatch(r"(checkpoint(ing)?|save|ckpt)_(steps|every|strategy)", option.name)
    offers = re.search(r"[\"'`]epoch[\"'`]", option.help) or "epoch" in option.choices
    untold = option.kind == VALUE and not option.default and not option.number
    return "epoch" if asked and offers and untold else ""


def _is(what: str, name: str) -> bool:
    return name in _NAMES[what]


def _saved_or_loaded(option: Option, name: str, usage: Usage) -> str:
    """`--checkpoint` may be where the state is read from, or where it is written to."""
    if name in usage.saved_to and not name.startswith(("resume", "restore")):
        return CHECKPOINTS
    ambiguous = re.fullmatch(
        r"(checkpoint|ckpt|chkpt|snapshot)(_(path|file|name))?|load|save", name
    )
    if ambiguous and name not in usage.loaded_from and option.default:
        return CHECKPOINTS
    return RESUME


def _names_a_dataset(option: Option, name: str) -> bool:
    """`--dataset cifar10` is a name, `--dataset ./cifar10` a folder."""
    if name not in ("dataset", "datasets", "data", "input", "corpus", "root"):
        return False
    if "/" in option.default or option.kind == POSITIONAL:
        return False
    says_folder = re.search(r"folder|direct|path|root|where|locat", option.help, re.IGNORECASE)
    if "|" in option.help:  # "cifar10 | folder | fake" lists names
        return True
    return name in ("dataset", "datasets") and not says_folder


def _looks_like_a_path(option: Option) -> bool:
    return (
        "/" in option.default or bool(_A_FILE.search(option.default)) or option.kind == POSITIONAL
    )


def _output_is_likely(option: Option, usage: Usage) -> bool:
    """A model's path (`--model-path bert-base`) is often an input, its folder seldom."""
    doubtful = option.name in ("model_path", "model_file") and option.name not in usage.saved_to
    return not (doubtful and option.name in usage.loaded_from)


def _resume_rank(option: Option, usage: Usage) -> tuple[bool, bool, int]:
    return (
        "resume" not in option.name,
        option.name not in usage.loaded_from,
        [VALUE, FLAG, POSITIONAL].index(option.kind),
    )


def is_file(option: Option) -> bool:
    """Whether an option names a file (`--save model.pt`) rather than a folder."""
    return bool(_A_FILE.search(option.default)) or option.name.endswith(("_file", "_name"))
