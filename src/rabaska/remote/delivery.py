"""Delivery over ssh: only what is missing, from the byte where it broke off, proven there."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from rabaska.domain.amounts import say_size
from rabaska.errors import CommandFailed, DamagedPack, NoSpace
from rabaska.remote import rsync, sending
from rabaska.remote.pieces import Piece, described, pieces
from rabaska.remote.place import Moved, NodeSide, Parcel, quoted
from rabaska.remote.refusals import ConnectionLost
from rabaska.remote.shell import Shell

_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone
_REPAIRS = 3  # times that a file may arrive other than it was sent


def deliver(parcels: Sequence[Parcel], shell: Shell, node: NodeSide, moved: Moved) -> None:
    """Send what is missing there; a connection that breaks is made again as long as it helps."""
    tries, repairs, most = 0, 0, -1
    while repairs < _REPAIRS:
        try:
            wanted, by_rsync = _begin(parcels, node)
            if not wanted:
                return
            there = sum(piece.offset for piece in wanted)
            tries, most = (0, there) if there > most else (tries + 1, most)
            _move(wanted, shell, node, moved, by_rsync=by_rsync)
            damaged = _finish(wanted, node)
        except ConnectionLost:
            if tries == _TRIES:
                raise
            shell.connection.open_again()
            continue
        if not damaged:
            return
        repairs, most = repairs + 1, -1
    raise DamagedPack(
        f"{damaged[0]} arrived damaged, {_REPAIRS} times",
        why="its sha256 there is not what it should be",
        hint="if the copy on this computer was changed, remove it there and pack again",
    )


def _begin(parcels: Sequence[Parcel], node: NodeSide) -> tuple[list[Piece], bool]:
    """One question for all: what is missing of those that are missing, and is rsync there?"""
    answer = _ask(node, "begin", [described(parcel) for parcel in parcels])
    if answer.get("room", {}).get("short"):
        raise _no_room(answer["room"])
    wanted = [
        piece
        for parcel in parcels
        if parcel.target in answer["missing"]
        for piece in pieces(parcel, answer["missing"][parcel.target])
    ]
    return wanted, bool(answer["rsync"])


def _finish(sent: Sequence[Piece], node: NodeSide) -> list[str]:
    """Have the far end prove and rename what came; the files it found to be damaged."""
    parcels = {piece.parcel.target: piece.parcel for piece in sent}
    answer = _ask(node, "finish", [described(each, proof=True) for each in parcels.values()])
    return [name or target for target in parcels for name in answer["damaged"].get(target, [])]


def _ask(node: NodeSide, act: str, parcels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    script = quoted([*node.node, "receive", act])
    outcome = node.run(script, feed=json.dumps(parcels).encode())
    if outcome.exit_code != 0:
        raise CommandFailed("the cluster could not take what was sent", why=outcome.complaint)
    answer: dict[str, Any] = json.loads(outcome.output.strip().splitlines()[-1])
    return answer


def _no_room(room: Mapping[str, Any]) -> NoSpace:
    short = room["short"][0]
    if short["unit"] == "bytes":
        needed, free = say_size(room["bytes"]), say_size(short["free"])
    else:
        needed, free = f"{room['files']:,} files", f"{short['free']:,} files"
    return NoSpace(
        "there is not enough room on the cluster; nothing was sent",
        why=f"{needed} would come and the {short['limit']} there has room for {free}",
        hint="remove what is no longer needed there, or name another `store` "
        "under [storage] in the cluster's profile",
    )


def _move(
    wanted: Sequence[Piece], shell: Shell, node: NodeSide, moved: Moved, *, by_rsync: bool
) -> None:
    """Send every missing byte, folder by folder; single files are small and need no rsync."""
    total = sum(piece.offset + piece.length for piece in wanted)
    done = sum(piece.offset for piece in wanted)
    for _, group in groupby(wanted, key=lambda piece: piece.parcel.target):
        needed = [piece for piece in group if piece.is_needed]
        told = partial(_tell, moved, done, total)
        if not needed:
            continue
        told(0)
        if not (by_rsync and needed[0].name and rsync.send(needed, shell, told)):
            sending.send(needed, shell, node, told)
        done += sum(piece.length for piece in needed)


def _tell(moved: Moved, before: int, total: int, sent: int) -> None:
    moved(min(before + sent, total), total)
