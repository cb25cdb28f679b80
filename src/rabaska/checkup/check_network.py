"""Checks for downloads at run time, on clusters whose nodes have no internet access."""

import ast
import os
import posixpath
import re
from collections.abc import Iterator

from rabaska.checkup.code_context import Nesting
from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject
from rabaska.scouting.source import Source, argument, called, last_word, literal, text

_FETCHES = {
    "urllib.request.urlretrieve",
    "urllib.request.urlopen",
    "request.urlretrieve",
    "urlretrieve",
    "wget.download",
    "gdown.download",
    "torch.hub.load",
    "hub.load",
    "torch.hub.download_url_to_file",
    "kagglehub.dataset_download",
    "tfds.load",
    "tensorflow_datasets.load",
    "nltk.download",
    "snapshot_download",
    "hf_hub_download",
    "keras.utils.get_file",
    "tf.keras.utils.get_file",
}
_HUB = {"from_pretrained", "load_dataset"}
_ONLINE = {"wandb.init": "WANDB_MODE", "comet_ml.Experiment": "COMET_MODE"}
_WHY = "the compute nodes of {} have no internet access"


def checks(subject: Subject) -> Iterator[Finding]:
    if subject.cluster.internet is not False:
        return
    for source in subject.sources:
        nesting = Nesting(source, subject.sources)
        for call in source.calls():
            download = _download(call, source, subject)
            if download and not nesting.is_optional(call):
                yield _finding(download, call, source, subject)
        yield from _trackers(source, nesting, subject)


def _finding(
    download: tuple[str, str], call: ast.Call, source: Source, subject: Subject
) -> Finding:
    what, fix = download
    return Finding(
        "code.download",
        what,
        str(source.place(call, called(call))),
        _WHY.format(subject.cluster.name),
        fix,
        serious=False,
        likely=True,
    )


def _download(call: ast.Call, source: Source, subject: Subject) -> tuple[str, str] | None:
    """What it would fetch, and what to do instead."""
    name, word = called(call), last_word(call)
    if literal(argument(call, "download")) is True:
        if _is_given_data(call, subject):
            return None  # what is there is not downloaded
        return (
            "it downloads its data",
            "download it here, name the folder under [data], and give it to the program as "
            "`{data}` in `command`",
        )
    if name in _FETCHES:
        return "it downloads a file", _instead(call)
    if word in _HUB and _is_on_a_hub(call, subject):
        return (
            f"it downloads {text(call.args[0])!r} from a hub",
            "download it here with `save_pretrained`, and name the folder under [data]",
        )
    if literal(argument(call, "pretrained")) is True or _has_public_weights(call):
        return (
            "it downloads pretrained weights",
            "save them here with `torch.save(model.state_dict(), …)` and load that file",
        )
    return None


def _is_given_data(call: ast.Call, subject: Subject) -> bool:
    """Whether the folder into which it would download is an option that is given a dataset."""
    root = argument(call, "root", 0)
    used = {node.attr for node in ast.walk(root) if isinstance(node, ast.Attribute)} if root else ()
    words = subject.project.command
    if any("RABASKA_DATA" in word for word in words) and _holds_data(text(root), subject):
        return True  # it is linked to its place
    given = {option.name for option in subject.script.options} if subject.script else set()
    return any(
        word.lstrip("-").partition("=")[0].replace("-", "_") == name
        and "{data" in (word.partition("=")[2] or following)
        for name in given & {*used}
        for word, following in zip(words, (*words[1:], ""), strict=True)
    )


def _holds_data(folder: str, subject: Subject) -> bool:
    place = subject.project.folder / posixpath.normpath(folder)
    paths = [path for dataset in subject.project.datasets for path in dataset.paths]
    return bool(folder) and any(path.is_relative_to(place) for path in paths)


def _instead(call: ast.Call) -> str:
    address = text(call.args[0]) if call.args else ""
    if address.startswith(("https://", "http://")):
        return (
            f'write `url = "{address}"` under [data.NAME], which downloads it before the job; '
            "read it from `{data}`, and leave this call out"
        )
    return (
        "download it here, name its folder under [data], and let the program do it only where "
        "the file does not exist"
    )


def _is_on_a_hub(call: ast.Call, subject: Subject) -> bool:
    name = text(call.args[0]) if call.args else ""
    is_path = name.startswith((".", "/", "~")) or os.path.exists(subject.project.folder / name)  # noqa: PTH110
    return bool(re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name)) and not is_path


def _has_public_weights(call: ast.Call) -> bool:
    """`weights="imagenet"`, `weights="DEFAULT"`, `weights=ResNet50_Weights.DEFAULT`."""
    given = argument(call, "weights")
    if isinstance(given, ast.Attribute):
        return "_Weights." in called(given)
    return text(given) in ("imagenet", "DEFAULT")


def _trackers(source: Source, nesting: Nesting, subject: Subject) -> Iterator[Finding]:
    for call in source.calls():
        variable = _ONLINE.get(called(call))
        mode = text(argument(call, "mode"))
        # W&B runs offline there, unless the program itself says otherwise.
        is_ours = variable == "WANDB_MODE" and mode != "online"
        told = variable in subject.variables or mode in ("offline", "disabled")
        if variable and not is_ours and not told:
            if nesting.is_optional(call):
                continue
            yield Finding(
                "code.tracker",
                f"{called(call).partition('.')[0]} contacts its server",
                str(source.place(call, called(call))),
                _WHY.format(subject.cluster.name),
                _offline(variable),
                serious=False,
                likely=True,
            )


def _offline(variable: str) -> str:
    if variable == "WANDB_MODE":
        return (
            'leave `mode="online"` out: it runs offline there, and `rabaska fetch --sync` uploads'
        )
    return f'set `{variable} = "offline"` under [environment.variables], and sync later'
