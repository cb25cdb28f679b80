"""The process that ends a lab: it outlives the tests, even when they are killed, and cleans up.

Run as `python keeper.py FOLDER NAME [STORAGE]...`. It starts the lab's first process, prints
its process id, and waits until its input is closed or its parent is gone. Then it kills the
lab's process namespace, which takes every mount, link and daemon with it.
"""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
# What Slurm needs to find and bound the processes of a job. Only in cgroup version 1:
# Slurm 22.05 asks systemd for its place in version 2.
CONTROLLERS = ("freezer", "memory")


def controllers() -> tuple[str, ...]:
    """The cgroup controllers a lab can use on this machine: all it wants, or none."""
    if all((CGROUPS / name / "cgroup.procs").exists() for name in CONTROLLERS):
        return CONTROLLERS
    return ()


def main(base: Path, name: str, storage: list[str]) -> None:
    parent = os.getppid()
    groups = [CGROUPS / controller / name for controller in controllers()]
    for group in groups:
        group.mkdir()
    world = start_world(base, groups, storage)
    try:
        if world.stdout is None or world.stdout.readline().strip() != b"ready":
            return
        print(first_child(world.pid), flush=True)
        while os.getppid() == parent and world.poll() is None:
            if select.select([0], [], [], 0.3)[0]:
                break
    finally:
        world.kill()
        world.wait()
        for group in groups:
            remove_cgroup(group)
        if not os.environ.get("RABASKA_LAB_KEEP"):
            shutil.rmtree(base, ignore_errors=True)


def start_world(base: Path, groups: list[Path], storage: list[str]) -> subprocess.Popen[bytes]:
    """Start world.sh in namespaces of its own; it dies with the process this returns."""
    # The shell enters the cgroups first: a cgroup namespace begins where its maker stands.
    enter = 'for group in $1; do echo $$ >"$group/cgroup.procs"; done; shift; exec "$@"'
    script = Path(__file__).parent / "scripts" / "world.sh"
    command = ["bash", "-c", enter, "bash", " ".join(map(str, groups))]
    # Should the keeper itself be killed, the lab must not stay behind.
    command += ["setpriv", "--pdeathsig", "KILL"]
    command += ["unshare", "-m", "-u", "-i", "-n", "-p", "-C", "--fork", "--kill-child=KILL"]
    command += ["bash", str(script), str(base), " ".join(group.parent.name for group in groups)]
    command += storage
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


def first_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def remove_cgroup(group: Path, patience: float = 5) -> None:
    """Remove a cgroup and those inside it; the kernel may need a moment to see them empty."""
    give_up = time.monotonic() + patience
    while group.exists() and time.monotonic() < give_up:
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        time.sleep(0.01)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
