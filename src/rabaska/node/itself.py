"""Our own program as a file: where it lies."""

import os

COMPILED = ".compiled"  # what the name of the copy with compiled code ends with


def own_path() -> str:
    """The zipapp (or folder) this very module was loaded from."""
    package = os.path.dirname(os.path.abspath(__file__))
    return os.path.dirname(os.path.dirname(package))


def program_path() -> str:
    """The program that was sent, also when it is its compiled copy that runs."""
    own = own_path()
    return own[: -len(COMPILED)] if own.endswith(COMPILED) else own
