"""Delivery over ssh: only what is missing, from the byte where it broke off, proven there."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rabaska.domain.amounts import say_size
from rabaska.errors import CommandFailed, DamagedPack, NoSpace
from rabaska.remote import rsync
from rabaska.remote.freight import Freight, freight, question
from rabaska.remote.place import Delivered, Moved, NodeSide, Parcel
from rabaska.remote.refusals import ConnectionLost, refuse_full_disk
from rabaska.remote.sending import prove, send
from rabaska.remote.shell import Shell

_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone
_REPAIRS = 3  # times that a file may arrive other than it was sent


def deliver(
    parcels: Sequence[Parcel], shell: Shell, node: NodeSide, moved: Moved, *, prefer_rsync: bool
) -> Delivered:
    """Send what is missing there.

    A connection that breaks is made again as long as it helps.
    """
    tries, repairs, most, least, stripes = 0, 0, 0, None, 0
    while repairs < _REPAIRS:
        try:
            missing, there = _missing(parcels, node)
            stripes = stripes or there["room"].get("stripes", 0)
            left = sum(each.missing for each in missing)
            most = max(most, left)
            if not missing:
                return Delivered(most, stripes)
            tries, least = (0, left) if least is None or left < least else (tries + 1, least)
            damaged = _move(missing, shell, node, moved, by_rsync=prefer_rsync and there["rsync"])
        except ConnectionLost:
            if tries == _TRIES:
                raise
            shell.connection.reopen()
            continue
        if not damaged:
            return Delivered(most, stripes)
        repairs, least = repairs + 1, None
    raise DamagedPack(
        f"{damaged[0]} arrived damaged, {_REPAIRS} times",
        why="its sha256 there is not what it should be",
        hint="if the copy on this computer was changed, remove it there and pack again",
    )


def _missing(parcels: Sequence[Parcel], node: NodeSide) -> tuple[list[Freight], Mapping[str, Any]]:
    """One question for all: what is missing of those that are missing, and how it is there."""
    asked = json.dumps([question(parcel) for parcel in parcels]).encode()
    outcome = node.run(node.quickly("receive", "begin", str(len(asked))), feed=asked)
    if outcome.exit_code != 0:
        refuse_full_disk(outcome.complaint)
        raise CommandFailed("the cluster did not tell what it has", why=outcome.complaint)
    answer: dict[str, Any] = json.loads(outcome.output.strip().splitlines()[-1])
    if answer["room"].get("short"):
        raise _no_room(answer["room"])
    missing = [
        freight(parcel, answer["missing"][parcel.target])
        for parcel in parcels
        if parcel.target in answer["missing"]
    ]
    return missing, answer


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
    missing: Sequence[Freight], shell: Shell, node: NodeSide, moved: Moved, *, by_rsync: bool
) -> list[str]:
    """Send every missing byte and have the whole proven; the files that were found damaged."""
    total = sum(each.size for each in missing)
    before = total - sum(each.missing for each in missing)

    def told(sent: int) -> None:
        moved(min(before + sent, total), total)

    if by_rsync and rsync.send(missing, shell, told):
        return prove(missing, node)
    return send(missing, shell, node, told)
