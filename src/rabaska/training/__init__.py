"""For training programs; optional, and light to import.

`session` makes a training that is killed and continued end as if it never had been;
`PackedDataset` reads packs in place. Python 3.8 and the standard library; PyTorch is imported
only by a session, and a DataLoader takes a PackedDataset as it is.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rabaska.training.sessions import Session, session

    from .errors import CannotResume, DamagedData, NotSaveable, SaveFailed, TrainingError, WrongUse
    from .packed_dataset import PackedDataset, folder
    from .random_crops import RandomResizedCrop, collate
    from .sample_order import Order

__all__ = [
    "CannotResume",
    "DamagedData",
    "NotSaveable",
    "Order",
    "PackedDataset",
    "RandomResizedCrop",
    "SaveFailed",
    "Session",
    "TrainingError",
    "WrongUse",
    "collate",
    "folder",
    "session",
]

_ROOMS = {
    "PackedDataset": "packed_dataset",
    "folder": "packed_dataset",
    "RandomResizedCrop": "random_crops",
    "collate": "random_crops",
    "Order": "sample_order",
    "Session": "sessions",
    "session": "sessions",
}


def __getattr__(name: str) -> object:
    """Imported when first used: programs that are only watched need none of it."""
    if name not in __all__:
        raise AttributeError("module {!r} has no attribute {!r}".format(__name__, name))
    import importlib

    module = importlib.import_module(__name__ + "." + _ROOMS.get(name, "errors"))
    globals()[name] = getattr(module, name)
    return globals()[name]
