"""For training programs that want to read packs directly; optional, and light to import.

Python 3.8 and the standard library; PyTorch is not needed, and a DataLoader takes what is here.
"""

from rabaska.training.packed import PackedDataset

__all__ = ["PackedDataset"]
