"""For training programs; optional, and light to import.

`session` makes a training that is killed and continued end as if it never had been;
`PackedDataset` reads packs in place. Python 3.8 and the standard library; PyTorch is imported
only by a session, and a DataLoader takes a PackedDataset as it is.
"""

from rabaska.training.packed import PackedDataset, folder
from rabaska.training.sampling import Order
from rabaska.training.sessions import Session, session
from rabaska.training.trouble import CannotResume, NotSaveable, SaveFailed, Trouble, WrongUse

__all__ = [
    "CannotResume", "NotSaveable", "Order", "PackedDataset", "SaveFailed", "Session", "Trouble",
    "WrongUse", "folder", "session",
]  # fmt: skip
