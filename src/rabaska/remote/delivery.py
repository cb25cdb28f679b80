"""Delivery over ssh: only what is missing, from the byte where it broke off, proven there."""

from collections.abc import Callable, Sequence

from rabaska.errors import DamagedPack
from rabaska.remote import rsync
from rabaska.remote.freight import Freight
from rabaska.remote.place import Delivered, Moved, NodeSide, Parcel
from rabaska.remote.refusals import ConnectionLost
from rabaska.remote.sending import Asked, NoProgram, asked
from rabaska.remote.shell import Shell

_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone
_REPAIRS = 3  # times that a file may arrive other than it was sent


def deliver(
    parcels: Sequence[Parcel], shell: Shell, node: NodeSide, moved: Moved, transfer: Shell | None
) -> Delivered:
    """Send what is missing there, through the host for transfers if there is one."""
    try:
        return _deliver(parcels, shell, node, moved, transfer)
    except NoProgram:
        node.send_program()
        return _deliver(parcels, shell, node, moved, transfer)


def _deliver(
    parcels: Sequence[Parcel], shell: Shell, node: NodeSide, moved: Moved, transfer: Shell | None
) -> Delivered:
    """A connection that breaks is made again as long as it helps."""
    tries, repairs, most, least, stripes = 0, 0, 0, None, 0
    while repairs < _REPAIRS:
        try:
            with asked(parcels, shell, node) as there:
                most, stripes = max(most, there.left), stripes or there.stripes
                if least is None or there.left < least:
                    tries, least = 0, there.left
                told = _telling(there.missing, moved)
                carrier = transfer if there.left else None  # bytes that are there need a proof only
                damaged = [] if carrier else there.send(told)
            if carrier:
                shell, transfer = _by_rsync(there, shell, carrier, told), None
                continue
        except ConnectionLost:
            tries += 1
            if tries > _TRIES:
                raise
            (transfer or shell).connection.reopen()
            continue
        if not damaged:
            return Delivered(most, stripes)
        repairs, least = repairs + 1, None
    raise DamagedPack(
        f"{damaged[0]} arrived damaged, {_REPAIRS} times",
        why="its sha256 there is not what it should be",
        hint="if the copy on this computer was changed, remove it there and pack again",
    )


def _by_rsync(there: Asked, login: Shell, transfer: Shell, told: Callable[[int], None]) -> Shell:
    """Send by rsync, if both ends have it; the host that has to take what is left then.

    Hosts made for transfers are made for rsync and may have no Python worth the name, so what
    rsync brought is proven from the login node.
    """
    by_rsync = there.has_rsync and rsync.send(there.missing, transfer, told)
    return login if by_rsync else transfer


def _telling(missing: Sequence[Freight], moved: Moved) -> Callable[[int], None]:
    """Tells of all bytes of what is missing, also of those that came before."""
    total = sum(each.size for each in missing)
    before = total - sum(each.missing for each in missing)
    return lambda sent: moved(min(before + sent, total), total)
