"""For training programs; optional, and light to import.

`session` makes a training that is killed and continued end as if it never had been;
`PackedDataset` reads packs in place. Python 3.8 and the standard library; PyTorch is imported
only by a session, and a DataLoader takes a PackedDataset as it is.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rabaska.training.packed import PackedDataset, folder
    from rabaska.training.sampling import Order
    from rabaska.training.sessions import Session, session
    from rabaska.training.trouble import (
        CannotResume,
        DamagedData,
        NotSaveable,
        SaveFailed,
        Trouble,
        WrongUse,
    )

__all__ = [
    "CannotResume", "DamagedData", "NotSaveable", "Order", "PackedDataset", "SaveFailed",
    "Session", "Trouble", "WrongUse", "folder", "session",
]  # fmt: skip

_ROOMS = {
    "PackedDataset": "packed", "folder": "packed", "Order": "sampling", "Session": "sessions",
    "session": "sessions",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Imported when first used: programs that are only watched need none of it."""
    if name not in __all__:
        raise AttributeError("module {!r} has no attribute {!r}".format(__name__, name))
    import importlib

    module = importlib.import_module(__name__ + "." + _ROOMS.get(name, "trouble"))
    globals()[name] = getattr(module, name)
    return globals()[name]
