"""Files and folders that nobody else can read or change, and the umask that makes them so."""

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Mapping, Optional

PREFIX = "rabaska-"

_ROOT = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as the kernel counts them


class NotPrivate(OSError):
    """A folder that somebody else can read or replace."""


def danger(path: str) -> str:
    """Why somebody else could replace what lies in the folder `path`; "" when nobody can.

    What is not there yet can be made by us, if nobody can replace what lies above it.
    """
    done, left, links = "/", _parts(os.path.abspath(path)), 0
    while True:
        why = _danger_of(done)
        if why or not left:
            return why
        step = os.path.join(done, left.pop(0))
        try:
            info = os.lstat(step)
        except FileNotFoundError:
            return ""
        if not has_trusted_owner(step):
            return "{} belongs to {}".format(step, _name_of(info.st_uid))
        if not stat.S_ISLNK(info.st_mode):
            done = step
            continue
        links += 1
        if links > _MOST_LINKS:
            return "{} is a loop of links".format(path)
        target = os.readlink(step)
        left = _parts(target) + left
        done = "/" if os.path.isabs(target) else done


def _parts(path: str) -> "List[str]":
    return [part for part in path.split("/") if part not in ("", ".")]


def _danger_of(folder: str) -> str:
    """Why others could rename what lies in `folder`; in a sticky one only its owner can."""
    info = os.lstat(folder)
    if not stat.S_ISDIR(info.st_mode):
        return "{} is not a folder".format(folder)
    if not others_write(info) or info.st_mode & stat.S_ISVTX:
        return ""
    return "others may write to {}".format(folder)


def others_write(info: os.stat_result) -> bool:
    """Whether others may write to what `info` describes; a group of our own is nobody else."""
    written_by_others = info.st_mode & _OTHERS_WRITE
    if written_by_others == stat.S_IWGRP:
        return not _is_own_group(info.st_gid)
    return bool(written_by_others)


def has_trusted_owner(path: str) -> bool:
    """Whether what lies at `path`, a link itself, is ours or that of the system's owner."""
    owner = os.lstat(path).st_uid
    if owner in (_ROOT, os.getuid()):
        return True
    # Inside a container made by a user, the owner of the system has no name of its own. Nor has
    # any other user: what everybody could have made may be anybody's.
    return owner == _nameless() and not others_write(os.stat(os.path.dirname(path) or "."))


def _nameless() -> "Optional[int]":
    """The number that stands for all other users inside such a container; None outside."""
    try:
        with open("/proc/self/uid_map") as stream:
            mapped = stream.read().split()
        if mapped[:3] != ["0", "0", "4294967295"]:
            with open("/proc/sys/kernel/overflowuid") as stream:
                return int(stream.read())
    except (OSError, ValueError):
        pass  # not Linux
    return None


def _is_own_group(number: int) -> bool:
    """Whether the group has nobody but us in it, as many systems give one to each user."""
    import grp
    import pwd

    try:
        group, own = grp.getgrgid(number), pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    alone = not set(group.gr_mem) - {own.pw_name}
    return alone and group.gr_name == own.pw_name and number == own.pw_gid


def _name_of(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "user {}".format(uid)


def not_ours(folder: str) -> str:
    """Why a folder is not ours alone; "" when it is, and none above it is a danger to it."""
    try:
        info = os.lstat(folder)
    except OSError as problem:
        return "{}: {}".format(folder, problem.strerror)
    if not stat.S_ISDIR(info.st_mode):
        return "{} is not a folder".format(folder)
    if info.st_uid != os.getuid():
        return "{} belongs to {}".format(folder, _name_of(info.st_uid))
    if stat.S_IMODE(info.st_mode) & 0o077:
        return "others can list {}".format(folder)
    return danger(os.path.dirname(os.path.abspath(folder)))


def claim(folder: str) -> str:
    """Make the folder ours alone, if it is there already or not; why that cannot be, else ""."""
    why = danger(os.path.dirname(os.path.abspath(folder)))
    if why:
        return why
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError as problem:
        return "{}: {}".format(folder, problem.strerror)
    _close_to_others(folder)
    return not_ours(folder)


def _close_to_others(folder: str) -> None:
    """What is ours, and nobody else could write to, is closed to those who could read it."""
    info = os.lstat(folder)
    ours = stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()
    if ours and info.st_mode & 0o077 and not info.st_mode & _OTHERS_WRITE:
        os.chmod(folder, 0o700)


def new_folder(parent: str, prefix: str = PREFIX) -> str:
    """A new folder of ours in `parent`, which is made where it is missing, under a name that
    nobody can guess; NotPrivate where others could replace it."""
    why = danger(parent)
    if why:
        raise NotPrivate(why)
    os.makedirs(parent, 0o700, exist_ok=True)
    path = os.path.join(parent, prefix + os.urandom(8).hex())
    os.mkdir(path, 0o700)  # FileExistsError where somebody guessed it after all
    why = not_ours(path)
    if why:
        try:
            os.rmdir(path)
        except OSError:
            pass  # somebody else's by now
        raise NotPrivate(why)
    return path


def open_to_all_above(path: str) -> "Optional[str]":
    """The nearest folder at or above `path` where everybody may make folders, as in /tmp."""
    while path != os.path.dirname(path):
        try:
            mode = os.stat(path).st_mode
        except OSError:
            mode = 0
        if mode & stat.S_ISVTX and mode & stat.S_IWOTH:
            return path
        path = os.path.dirname(path)
    return None


UMASK = "RABASKA_UMASK"  # the user's own, in octal digits

_OUR_UMASK = 0o077


def close_umask() -> None:
    """From now on, what this process and its children write is nobody else's."""
    os.environ[UMASK] = "{:03o}".format(os.umask(_OUR_UMASK))


def users_umask(environment: "Optional[Mapping[str, str]]" = None) -> "Optional[int]":
    """The user's own umask; None where nobody has changed it."""
    try:
        return int((environment or os.environ).get(UMASK, ""), 8) & 0o777
    except ValueError:
        return None


def restore_umask(environment: "Optional[Mapping[str, str]]" = None) -> None:
    """Give the user's own umask to this process, which is about to become the user's program."""
    own = users_umask(environment)
    if own is not None:
        os.umask(own)


def umask_restored(
    act: "Callable[[], None]", environment: "Optional[Mapping[str, str]]" = None
) -> "Callable[[], None]":
    """`act` and then `restore`, for the moment between fork and exec."""

    def both() -> None:
        act()
        restore_umask(environment)

    return both


class AsUser:
    """Inside the `with`, files are made as the user's own programs would make them."""

    def __enter__(self) -> None:
        own = users_umask()
        self._before = None if own is None else os.umask(own)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            os.umask(self._before)
