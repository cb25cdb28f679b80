"""Clean: take away what no run needs, never what an unfinished one does."""

import time
from dataclasses import dataclass

from rabaska.domain.stored_items import StoredItem, StoreReport, old_runs, unneeded
from rabaska.domain.untrusted import count
from rabaska.errors import CommandFailed
from rabaska.records.home import Home
from rabaska.remote.place import quoted
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.store_contents import store_contents

_MARK = "== run "
# The plan and every script of each run that has not finished, below a line with its name. A search
# may always get more trials.
_UNFINISHED = """
[ -e {store} ] || [ -L {store} ] || exit 0
cd {store} || exit 1
for kind in runs searches; do
  [ -e $kind ] || [ -L $kind ] || continue
  [ -r $kind ] && [ -x $kind ] || {{ echo "$PWD/$kind cannot be read" >&2; exit 1; }}
done
for path in runs/*; do
  [ -d "$path" ] || continue
  [ -e "$path/DONE" ] && continue
  printf '\\n{mark}%s\\n' "${{path#*/}}"
  if cat "$path/run.json" 2>/dev/null; then cat "$path"/job*.sh 2>/dev/null; fi
done
for path in searches/*; do
  case $path in *.partial) continue;; esac
  [ -d "$path" ] || continue
  printf '\\n{mark}%s\\n' "$path"
  if cat "$path/study.json" 2>/dev/null; then cat "$path"/*.sh 2>/dev/null; fi
done
exit 0
"""
# What a clean that was killed set aside goes back, for a run may need it by now. What it began to
# delete is incomplete, and named so.
_RETURN = """
cd {store} 2>/dev/null || exit 0
for aside in trash-*; do
  case $aside in *{deleting}) rm -rf "$aside" || exit 1; continue;; esac
  [ -d "$aside" ] || continue
  for path in "$aside"/*/*; do
    [ -e "$path" ] || continue
    goal=${{path#*/}}
    if [ -e "$goal" ]; then rm -rf "$path" || exit 1; continue; fi
    mkdir -p "${{goal%/*}}" && mv "$path" "${{goal%/*}}/" || exit 1
  done
  find "$aside" -depth -type d -exec rmdir {{}} \\; || exit 1
done
"""
_DELETING = ".deleting"


@dataclass(frozen=True)
class Cleaning:
    """What may go, and what went; nothing goes in a preview."""

    cluster: str
    unneeded: tuple[StoredItem, ...]
    removed: tuple[StoredItem, ...] = ()
    old_runs: tuple[StoredItem, ...] = ()  # finished long ago; only `delete` removes them

    @property
    def size(self) -> int:
        return sum(each.size for each in self.unneeded)


def preview(on: str, home: Home) -> Cleaning:
    cluster = connect(on, home)
    found, old = _unneeded(cluster)
    return Cleaning(on, found, old_runs=old)


def clean(on: str, home: Home) -> Cleaning:
    """Set aside, look again, and only then delete.

    A run that was submitted meanwhile finds its things back before any of its jobs begins: what
    it speaks of, or what was used since we looked, is returned to its place. A push that comes
    after that finds it missing, and sends it again.
    """
    cluster = connect(on, home)
    _return_leftovers(cluster)
    found, old = _unneeded(cluster)
    if not found:
        return Cleaning(on, (), old_runs=old)
    aside = f"{cluster.store}/trash-{time.time_ns()}"
    _move(cluster, found, cluster.store, aside)
    used, runs = _used_since(cluster, found, aside), unfinished_runs(cluster)
    wanted = [each for each in found if each in used or _is_wanted(each, runs)]
    _move(cluster, wanted, aside, cluster.store)
    doomed = f"{aside}{_DELETING}"
    outcome = cluster.place.run(f"mv {quoted([aside, doomed])} && rm -rf {quoted([doomed])}")
    if outcome.exit_code != 0:
        raise CommandFailed(f"{aside} could not be deleted", why=outcome.complaint)
    return Cleaning(on, found, tuple(each for each in found if each not in wanted), old)


def _return_leftovers(cluster: ConnectedCluster) -> None:
    script = _RETURN.format(store=quoted([cluster.store]), deleting=_DELETING)
    outcome = cluster.place.run(script)
    if outcome.exit_code != 0:
        raise CommandFailed(
            f"what an interrupted `rabaska clean` set aside in {cluster.store} could not be put "
            "back",
            why=outcome.complaint,
        )


def _unneeded(
    cluster: ConnectedCluster,
) -> tuple[tuple[StoredItem, ...], tuple[StoredItem, ...]]:
    """What no run needs, and the runs that finished long ago."""
    kept, _ = store_contents(cluster)
    current = cluster.program.stem
    spare = [each for each in kept if not (each.kind == "node" and each.stem == current)]
    unfinished, now = unfinished_runs(cluster), _now(cluster)
    return unneeded(spare, unfinished, now), old_runs(kept, unfinished, now)


def _now(cluster: ConnectedCluster) -> float:
    """By the cluster's clock, as the times of its files are: ours may be days ahead."""
    told = cluster.place.run("date +%s").output.split()
    now = count(told[-1]) if told else None
    return time.time() if now is None else float(now)


def unfinished_runs(cluster: ConnectedCluster) -> tuple[StoreReport, ...]:
    """Each run on the cluster that has no DONE, whoever submitted it from wherever."""
    script = _UNFINISHED.format(store=quoted([cluster.store]), mark=_MARK)
    outcome = cluster.place.run(script)
    if outcome.exit_code != 0:
        raise CommandFailed("the runs could not be inspected", why=outcome.complaint)
    parts = outcome.output.split(f"\n{_MARK}")[1:]
    named = (part.partition("\n") for part in parts)
    return tuple(StoreReport(name.strip(), text.strip()) for name, _, text in named)


def _used_since(
    cluster: ConnectedCluster, things: tuple[StoredItem, ...], folder: str
) -> set[StoredItem]:
    """Those whose time is no longer what it was when they were listed."""
    names = quoted([each.path for each in things])
    outcome = cluster.place.run(f"cd {quoted([folder])} && stat -c '%Y %n' -- {names}")
    times = (line.partition(" ") for line in outcome.output.splitlines())
    now = {path: float(time) for time, _, path in times if count(time) is not None}
    return {each for each in things if now.get(each.path) != each.written}


def _is_wanted(each: StoredItem, runs: tuple[StoreReport, ...]) -> bool:
    return any(not told.text or each.stem in told.text for told in runs)


def _move(
    cluster: ConnectedCluster,
    things: tuple[StoredItem, ...] | list[StoredItem],
    source: str,
    target: str,
) -> None:
    lines = ["set -e"]
    for each in things:
        folder = quoted([f"{target}/{each.kind}"])
        lines.append(f"mkdir -p {folder}; mv {quoted([f'{source}/{each.path}'])} {folder}/")
    outcome = cluster.place.run("\n".join(lines))
    if outcome.exit_code != 0:
        raise CommandFailed("something could not be set aside", why=outcome.complaint)
