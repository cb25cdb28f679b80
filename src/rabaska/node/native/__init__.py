"""What is compiled: a library in plain C for each kind of processor, and how Python calls it.

`compiled` has its functions, under every Python alike. It is None where the library cannot be
loaded (a Python without ctypes, another libc, a folder that may not hold programs); then Python
does the work, and `why_missing` says why. `RABASKA_NATIVE=0` does without it.
"""

import json
from typing import Any, List

compiled: Any = None
why_missing = ""
try:
    from . import calls

    compiled = calls
except ImportError as problem:
    why_missing = str(problem) or "it cannot be imported"


def main(_argv: List[str]) -> int:
    """`compiled`: print why it is missing on this computer, as {"why"}; empty where it is there."""
    print(json.dumps({"why": why_missing}))
    return 0
