"""`python sanitized.py COUNT [SEED]`: damaged packs, under sanitizers of addresses and arithmetic.

The library is compiled anew for it, into a copy of the source tree.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def run(count: int, seed: int = 1) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(REPOSITORY / "src", folder, dirs_exist_ok=True)
        name = f"librabaska-linux-{platform.machine()}.so"
        target = Path(folder) / "rabaska" / "node" / "native" / name
        target.unlink(missing_ok=True)
        sources = sorted((REPOSITORY / "native").glob("*.c"))
        words = ["gcc", "-O1", "-g", "-shared", "-fPIC", *SANITIZERS, *sources, "-o", target]
        subprocess.run(words, check=True)
        program = Path(__file__).with_name("damaged_packs.py")
        return subprocess.run(
            [sys.executable, program, str(count), str(seed)],
            check=False, capture_output=True, text=True, env=_environment(folder),
        )  # fmt: skip


def _environment(source: str) -> dict[str, str]:
    """Python's own memory comes from malloc, so that the sanitizer sees where each object ends."""
    asked = ["gcc", "-print-file-name=libasan.so"]
    runtime = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    return {
        **os.environ,
        "PYTHONPATH": source,
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": os.path.realpath(runtime),
        "ASAN_OPTIONS": "detect_leaks=0,handle_segv=1",
    }


if __name__ == "__main__":
    ended = run(*map(int, sys.argv[1:]))
    print(ended.stdout + ended.stderr, end="")
    sys.exit(ended.returncode)
