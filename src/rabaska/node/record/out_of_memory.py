"""What is said of a job that ran out of memory: how much it had, and the line to change."""

import math

from .run_folder import RunFolder

_NICE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # GB


def remedy(run: str, used: int) -> str:
    """The line to change for a job that needed more than `used` bytes."""
    more = enough(used)
    return (
        'set `memory = "{0}"` in [resources] and `rabaska run`, or `rabaska resume {1} --memory '
        "{2}`; fewer DataLoader workers or a smaller batch need less"
    ).format(more, run, more.replace(" ", ""))


def enough(used: int) -> str:
    """Half as much again, as people write it."""
    wanted = max(1.0, 1.5 * used / 1e9)
    return "{} GB".format(next((size for size in _NICE if size >= wanted), math.ceil(wanted)))


def say_size(size: int) -> str:
    """`5.1 GB`, `800 MB`."""
    if size >= 10**9:
        return "{:.1f} GB".format(size / 1e9)
    return "{:.0f} MB".format(size / 1e6)


def asked(run: RunFolder) -> int:
    """Bytes that each job of the run asks for; 0 when it leaves that to the cluster."""
    from . import plan  # `status` says the line to change, and has no time to import this

    try:
        run_plan = plan.load(run)
    except (plan.WrongFormat, ValueError):
        return 0
    return (run_plan.request.resources.memory or 0) if run_plan is not None else 0
