"""Our own program as a file: where it lies."""

import os


def own_path() -> str:
    """The zipapp (or folder) this very module was loaded from."""
    package = os.path.dirname(os.path.abspath(__file__))
    return os.path.dirname(os.path.dirname(package))
