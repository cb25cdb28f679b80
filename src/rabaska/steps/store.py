"""The store on a cluster: the folder that holds our things, which nobody else may change."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rabaska.domain.clusters import Cluster
from rabaska.domain.shell_words import expanding
from rabaska.errors import CommandFailed, SettingsError
from rabaska.remote.place import Place, surely

USUAL = "~/rabaska"  # where a profile names no better place
_NO_PYTHON = 96  # exit code
_STORED = (
    "runs",
    "packs",
    "code",
    "envs",
    "node",
    "queue",
    "shells",
    "downloads",
    "arriving",
    "nodes.json",
    "disks.json",
)
_ROOT = 0
_STICKY, _GROUP_WRITES, _ALL_WRITE = 0o1000, 0o020, 0o002


def store_word(cluster: Cluster) -> str:
    """The store as a word for the cluster's own shell."""
    return expanding(cluster.store or USUAL)


def resolved_store(cluster: Cluster, place: Place) -> str:
    """Where the cluster keeps our things, its own variables expanded by its own shell."""
    if "{" in cluster.store.replace("${", ""):
        raise SettingsError(
            f"the profile of {cluster.name} cannot know where you may store",
            why=f"its `store` is {cluster.store}",
            hint=f"`rabaska clusters add {cluster.name} --host {cluster.host}` writes one of your "
            "own, in which you can write the folder itself",
        )
    word = store_word(cluster)
    python = f"command -v {expanding(cluster.python)} >/dev/null || exit {_NO_PYTHON}"
    steps = f"{_closing(cluster)}{_LOOK}{_closing_rooms(cluster)}pwd -P"
    making = f"mkdir -p {word} && cd {word} && {{ {steps}; }}"
    outcome = surely(lambda: place.run(f"{python}; set -u; {making}"))
    if outcome.exit_code == _NO_PYTHON:
        raise CommandFailed(
            f"{cluster.name} has no `{cluster.python}` on its login node",
            why="rabaska's own part there runs under it, from Python 3.6 on",
            hint="name one that is there as `python` in the cluster's profile, such as "
            "`/usr/bin/python3.9`, or load its module in ~/.bash_profile there; "
            f"`rabaska clusters check {cluster.name}` compares the profile with the cluster",
        )
    if outcome.exit_code != 0:
        from rabaska.remote.ssh_errors import refuse_full_disk

        refuse_full_disk(outcome.complaint)
        raise CommandFailed(
            f"{cluster.name} has no place for `{cluster.store or USUAL}`",
            why=outcome.complaint,
            hint="change `store` under [storage] in the cluster's profile",
        )
    _refuse_others(cluster, outcome.output)
    said = outcome.output.strip().splitlines()
    if not said or not said[-1].startswith("/"):
        raise CommandFailed(
            f"{cluster.name} did not say where `{cluster.store or USUAL}` is",
            why=f"it answered {outcome.output.strip()[-200:]!r}",
            hint="a start-up file there may print, or end the shell; "
            f"`rabaska clusters check {cluster.name}` shows what it answers",
        )
    return said[-1]


def _closing(cluster: Cluster) -> str:
    """Shell words that close the store, the folder they run in, to all who may not read it.

    A folder that holds other things as well was not made for us, and stays as open as it is.
    """
    ours = " ".join(f"-e {name}" for name in _STORED)
    return f"ls -A | grep -qvxF {ours} || chmod {_modes(cluster)} . 2>/dev/null; "


def _closing_rooms(cluster: Cluster) -> str:
    """The same for what is ours in there, whatever else there is."""
    modes, names = _modes(cluster), " ".join(_STORED)
    return f'for kept in {names}; do [ ! -d "$kept" ] || chmod {modes} "$kept" 2>/dev/null; done; '


def _modes(cluster: Cluster) -> str:
    return "g=rxs,o=" if cluster.share == "group" else "go="


_FORMAT = "%u %a %U/%G%n"  # of `stat`: names may hold spaces, and a path begins with its slash
# Says who owns the store, what is in it, and each folder above it, the nearest first. Of a link in
# the store, both the link and what it leads to.
_LOOK = f"""
here=$(pwd -P); above=$here; set --
while [ "$above" ]; do above=${{above%/*}}; set -- "$@" "${{above:-/}}"; done
echo "rabaska-user $EUID $(id -un 2>/dev/null)"
stat -Lc "rabaska-above {_FORMAT}" -- "$@" 2>/dev/null
set -- "$here"
for kept in {" ".join(_STORED)}; do
  if [ -e "$kept" ] || [ -L "$kept" ]; then set -- "$@" "${{here%/}}/$kept"; fi
done
stat -Lc "rabaska-kept {_FORMAT}" -- "$@" 2>/dev/null
stat -c "rabaska-name {_FORMAT}" -- "$@" 2>/dev/null
"""


@dataclass(frozen=True)
class _Folder:
    """What `stat` said of a folder."""

    owner: int
    owner_name: str
    group: str
    mode: int
    path: str


@dataclass(frozen=True)
class _User:
    """Who we are there."""

    number: int
    name: str  # many systems give each user a group of the same name
    shares: bool  # whether the store is shared with its group

    @property
    def trusted(self) -> tuple[int, ...]:
        return (_ROOT, self.number)


def _said(output: str, about: str) -> list[_Folder]:
    line = rf"^rabaska-{about} (\d{{1,10}}) ([0-7]{{1,6}}) ([^/]*)/([^/]*)(/.*)$"
    return [
        _Folder(int(owner), name, group, int(mode, 8), path)
        for owner, mode, name, group, path in re.findall(line, output, re.MULTILINE)
    ]


def _refuse_others(cluster: Cluster, output: str) -> None:
    """Whoever can change what is in the store can have their own code run by us."""
    why, hint = next(_dangers(output, shared=cluster.share == "group"), ("", ""))
    if why:
        raise SettingsError(
            f"the store {cluster.store or USUAL} on {cluster.name} could be changed by others",
            why=f"{why}, so what runs there in your name could be somebody else's",
            hint=hint,
        )


def _dangers(output: str, *, shared: bool) -> Iterator[tuple[str, str]]:
    """Why others could change the store, and what to do about it."""
    user = re.search(r"^rabaska-user (\d{1,10}) ?(.*)$", output, re.MULTILINE)
    kept = _said(output, "kept")
    if not user or not kept:
        raise CommandFailed("nothing is known about who may write to the store", why=output.strip())
    me = _User(int(user[1]), user[2], shared)
    for folder in kept:
        yield from _dangers_in(folder, kept[0], me)
    yield from (_of_another(name) for name in _said(output, "name") if name.owner not in me.trusted)
    yield from _dangers_above([kept[0], *_said(output, "above")], me)


def _dangers_in(folder: _Folder, store: _Folder, me: _User) -> Iterator[tuple[str, str]]:
    group_writes = bool(folder.mode & _GROUP_WRITES) and folder.group != me.name
    all_write = bool(folder.mode & _ALL_WRITE)
    if folder.owner not in me.trusted:
        yield _of_another(folder)
    elif folder.owner != me.number and (all_write or group_writes):
        yield f"{folder.path} belongs to root and others may write to it", _below(store)
    elif all_write or (group_writes and not me.shares):
        yield f"others may write to {folder.path}", _closed_by(folder)


def _dangers_above(steps: Sequence[_Folder], me: _User) -> Iterator[tuple[str, str]]:
    """Folders that anybody could have made, or whose content anybody can rename.

    A project's folder belongs to whoever leads it, and its group may write there: they are trusted.
    """
    for above, step in pairwise(reversed(steps)):
        if above.mode & _ALL_WRITE and not above.mode & _STICKY:
            yield f"everybody may rename what is in {above.path}", _elsewhere()
        if above.mode & _ALL_WRITE and step.owner not in me.trusted:
            yield _of_another(step)


def _of_another(folder: _Folder) -> tuple[str, str]:
    return f"{folder.path} belongs to another user, {folder.owner_name}", _elsewhere()


def _elsewhere() -> str:
    return (
        "change `store` under [storage] in the cluster's profile to a folder of your own, "
        "such as one that ends in /$USER/rabaska"
    )


def _below(store: _Folder) -> str:
    folder = store.path.rstrip("/")
    return f'write `store = "{folder}/$USER/rabaska"` under [storage] in the cluster\'s profile'


def _closed_by(folder: _Folder) -> str:
    return (
        f"`chmod go-w {folder.path}` on the cluster, if you know all that is in it; or "
        + _elsewhere()
    )
