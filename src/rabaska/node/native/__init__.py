"""What is compiled: a library in plain C for each kind of processor, and how Python calls it.

`compiled` has its functions, under every Python alike. It is None where the library cannot be
loaded (a Python without ctypes, another libc, a folder that may not hold programs); then Python
does the work. `RABASKA_NATIVE=0` does without it.
"""

from typing import Any

compiled: Any = None
try:
    from . import calls

    compiled = calls
except ImportError:
    pass
