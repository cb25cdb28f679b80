"""Libraries that the program has, imported only when they are needed."""

import importlib
import sys
from typing import Any, Optional


def torch() -> Any:
    return importlib.import_module("torch")


def numpy() -> Optional[Any]:
    """NumPy, if the program uses it: what was never imported has drawn no random numbers."""
    return sys.modules.get("numpy")


def in_worker() -> bool:
    """Whether this process makes batches for a DataLoader."""
    worker_info = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
    return worker_info is not None and worker_info() is not None
