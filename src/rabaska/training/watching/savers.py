"""The functions that write checkpoints, each made to write whole ones."""

import functools
import os
from typing import Any, Callable, Dict

from rabaska.training.watching.saving import whole
from rabaska.training.watching.watcher import Watcher


def _make_whole(
    owner: Any, name: str, place: int, keyword: str, watcher: Watcher, *endings: str
) -> None:
    if hasattr(owner, name):
        save = whole(getattr(owner, name), place, keyword, watcher.saved, endings)
        setattr(owner, name, save)


def _torch(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save", 1, "f", watcher)


def _numpy(module: Any, watcher: Watcher) -> None:
    for name in ("save", "savez", "savez_compressed"):
        if hasattr(module, name):
            # Data, for all that can be told; a state in this format is known by its name.
            save = whole(getattr(module, name), 0, "file", lambda took, _: watcher.saved(took))
            setattr(module, name, save)


def _safetensors(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save_file", 1, "filename", watcher)


def _keras(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save_model", 1, "filepath", watcher, ".keras")
    _make_whole(module, "save_weights_only", 1, "filepath", watcher, ".weights.h5")


def _keras_h5(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save_model_to_hdf5", 1, "filepath", watcher, ".h5", ".hdf5")


def _lightning(module: Any, watcher: Watcher) -> None:
    """Its own way moves a file from TMPDIR, which is a copy where that is another disk."""
    save = module._atomic_save

    @functools.wraps(save)
    def atomic_save(checkpoint: Any, filepath: Any) -> None:
        if os.path.isdir(os.path.dirname(os.path.abspath(str(filepath)))):
            module.torch.save(checkpoint, str(filepath))
        else:
            save(checkpoint, filepath)

    module._atomic_save = atomic_save


KNOWN: Dict[str, Callable[[Any, Watcher], None]] = {
    "torch.serialization": _torch,
    "numpy": _numpy,
    "safetensors.torch": _safetensors,
    "safetensors.numpy": _safetensors,
    "keras.src.saving.saving_lib": _keras,
    "keras.src.legacy.saving.legacy_h5_format": _keras_h5,
    "lightning.fabric.utilities.cloud_io": _lightning,
    "lightning_fabric.utilities.cloud_io": _lightning,
}
