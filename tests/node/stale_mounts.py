"""Two mounts of one folder that remember what they saw for a while, as two nodes of an NFS do.

A small FUSE program of libfuse's examples passes everything on by inode, as NFS does by handle: a
folder that another node renamed is still found under its old name, and written to, until the memory
of it is over. What a file holds is asked for anew at every open (close-to-open).
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EXAMPLES = Path("/usr/share/doc/libfuse3-dev/examples")
SOURCE = "passthrough_ll.c"


def compiled(folder: Path) -> Path:
    """The program that mounts; it remembers names, attributes and listings, and no content."""
    if not Path("/dev/fuse").exists() or os.geteuid() != 0 or not (EXAMPLES / SOURCE).exists():
        pytest.skip("needs root, /dev/fuse and libfuse3-dev")
    text = (EXAMPLES / SOURCE).read_text().replace("fi->keep_cache = 1", "fi->keep_cache = 0")
    text = text.replace("fi->cache_readdir = 1;", "fi->cache_readdir = fi->keep_cache = 1;")
    (folder / SOURCE).write_text(text)
    asked = ["pkg-config", "fuse3", "--cflags", "--libs"]
    flags = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    program = folder / "passthrough"
    words = ["-O1", "-w", f"-I{EXAMPLES}", str(folder / SOURCE), "-o", str(program), *flags]
    subprocess.run(["gcc", *words], check=True)
    return program


@contextmanager
def mounted(program: Path, source: Path, place: Path, remembers: float) -> Iterator[Path]:
    place.mkdir()
    options = f"source={source},cache=always,timeout={remembers}"
    server = subprocess.Popen([program, "-f", "-o", options, place], stderr=subprocess.DEVNULL)
    while not os.path.ismount(place):
        assert server.poll() is None, "FUSE cannot mount here"
        time.sleep(0.01)
    try:
        yield place
    finally:
        subprocess.run([shutil.which("fusermount3") or "umount", "-u", "-z", place], check=False)
        server.wait(10)
