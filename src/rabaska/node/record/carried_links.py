"""The links that lead to what a run carries, moved on when a job claims the run (see `lease`)."""

import os

from .. import files
from .run_folder import RunFolder


def point_output(run: RunFolder, job: int) -> None:
    """Point the `output` that people look at to where it lies now."""
    _point(run.output_link, os.path.relpath(run.output(job), run.path))


def settle(run: RunFolder, last: int, job: int, *, is_over: bool) -> None:
    """Let what is carried keep its path, for programs store paths; but not for a silent holder.

    A holder that recorded its end writes no more. One that did not may come back, so the folder is
    renamed, and the paths that its program knows stop resolving; links in it are led to its new
    place.
    """
    name = run.carried(job)
    if not os.path.islink(name):
        return  # a run of an older version: the claim itself renamed the folder
    place = run.newest_kept()
    is_renamed = last and not is_over
    if is_renamed:
        os.rename(run.kept(place), run.kept(job))
        place = job
    # At once: until it leads there, nobody finds any results.
    _point(name, os.path.relpath(run.kept(place), os.path.dirname(name)))
    if is_renamed:
        _lead_on(run.kept(job))


def _lead_on(folder: str) -> None:
    """Symbolic links below `folder` that lead to where it was before lead there again.

    Whenever that was: a job may have been killed while it was at this.
    """
    every, here = os.path.dirname(folder) + os.sep, os.path.basename(folder)
    for parent, below, names in os.walk(folder):
        for name in below + names:
            path = os.path.join(parent, name)
            target = os.readlink(path) if os.path.islink(path) else ""
            was, _, inside = target[len(every) :].partition(os.sep)
            if target.startswith(every) and was.isdigit() and was != here and inside:
                _point(path, os.path.join(folder, inside))


def _point(link: str, target: str) -> None:
    """A symbolic link to `target`, in place of the one that is there."""
    fresh = files.partial_name(link)
    files.remove_if_there(fresh)
    os.symlink(target, fresh)
    os.replace(fresh, link)
