"""A fetch over ssh: what is new there, resumed where it broke off, proven here."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rabaska.domain import untrusted
from rabaska.errors import CommandFailed
from rabaska.node.login import send_results
from rabaska.remote.arriving_files import (
    ARRIVING,
    Offered,
    arrived,
    cut_off,
    make_arriving,
    place_link,
    put_in_place,
    store,
)
from rabaska.remote.fetch_record import (
    NOTE,
    PAUSE,
    ROUNDS,
    FetchRecord,
    FetchResult,
    alone_in,
    grows,
    is_left_out,
    read_record,
)
from rabaska.remote.local_disk import remove, unwritable
from rabaska.remote.place import Moved, NodeSide, SourceGone, quoted
from rabaska.remote.ssh_errors import ConnectionLost
from rabaska.remote.ssh_shell import Shell, StartedCommand

# What the far end answers; see `send-results` there.
_LISTED = {
    "path": untrusted.PATH,
    "size": untrusted.SIZE,
    "mtime_ns": untrusted.NANOSECONDS,
    "link?": (untrusted.PATH, None),
    "problem?": str,
}
_GIVEN = {
    "size": int,
    "mtime_ns": untrusted.NANOSECONDS,
    "offset": untrusted.SIZE,
    "problem?": str,
}
_PROVEN = {"sha256": str, "changed": bool, "problem": str}

_LONGEST = 1 << 20  # bytes of an answer that is one line
_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone


def bring(
    source: str, target: Path, shell: Shell, node: NodeSide, leave_out: Sequence[str], moved: Moved
) -> FetchResult:
    with alone_in(target):
        return _bring(source, target, shell, node, leave_out, moved)


def _bring(
    source: str, target: Path, shell: Shell, node: NodeSide, leave_out: Sequence[str], moved: Moved
) -> FetchResult:
    """What came; a connection that breaks is made again as long as it helps."""
    fetched: list[Offered] = []
    record = read_record(target)
    tries, most, rounds = 0, -1, 1
    while True:
        try:
            record.begin_round()
            wanted = _wanted(_offered(source, node), record, leave_out)
            done = sum(file.size for file in fetched) + sum(
                arrived(file, target) for file in wanted
            )
            tries, most = (0, done) if done > most else (tries + 1, most)
            for file in _arrivals(source, wanted, record, shell, node, moved):
                fetched.append(file)
                record.note(file.path, file.size, file.mtime_ns)
            remove(target / ARRIVING)
        except ConnectionLost:
            if tries == _TRIES:
                raise
            shell.connection.reopen()
            continue
        except OSError as problem:
            raise unwritable(problem, target) from problem
        finally:
            with suppress(OSError):  # what came is here all the same
                record.write()
        if not record.unfinished or rounds == ROUNDS:
            return record.result()
        rounds += 1
        time.sleep(PAUSE)


def _offered(source: str, node: NodeSide) -> list[Offered]:
    outcome = node.run(quoted([*node.node, "send-results", "list", source]))
    if outcome.exit_code == send_results.GONE:
        raise SourceGone(source)
    if outcome.exit_code != 0:
        raise CommandFailed(f"{source} could not be listed", why=outcome.complaint)
    try:
        answers = untrusted.read_lines(outcome.output, _LISTED)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable("", problem) from problem
    names = [field.name for field in fields(Offered)]
    return [
        Offered(**{name: answer[name] for name in names if name in answer}) for answer in answers
    ]


def _wanted(
    offered: Sequence[Offered], record: FetchRecord, leave_out: Sequence[str]
) -> list[Offered]:
    """What is not here as it is there; what would lead out of the folder is not for us."""
    for file in offered:
        if file.problem and not is_left_out(file.path, leave_out):
            record.unread[file.path] = file.problem
    return [
        file
        for file in offered
        if not file.problem
        and _stays_inside(file.path)
        and not is_left_out(file.path, leave_out)
        and not record.refuses(file.path, file.link)
        and record.wants(file.path, file.size, file.mtime_ns)
    ]


def _stays_inside(path: str) -> bool:
    """Whether it is a path below the folder, and none of what we keep there ourselves."""
    parts = PurePosixPath(path).parts
    ours = parts[:1] in ((NOTE,), (ARRIVING,), ())
    return not path.startswith("/") and ".." not in parts and not ours


def _arrivals(
    source: str,
    wanted: Sequence[Offered],
    record: FetchRecord,
    shell: Shell,
    node: NodeSide,
    moved: Moved,
) -> Iterator[Offered]:
    """Each file as soon as it is whole and in its place."""
    links = [file for file in wanted if file.link is not None]
    contents = [file for file in wanted if file.link is None]
    if contents:
        yield from _receive(source, contents, record, shell, node, moved)
    for file in links:
        record.make_way(file.path)
        place_link(file, record.folder)
        yield file


def _receive(
    source: str,
    wanted: Sequence[Offered],
    record: FetchRecord,
    shell: Shell,
    node: NodeSide,
    moved: Moved,
) -> Iterator[Offered]:
    target = record.folder
    make_arriving(target)
    order = [[file.path, file.size, file.mtime_ns, arrived(file, target)] for file in wanted]
    total, done = sum(file.size for file in wanted), 0
    with shell.started(quoted([*node.node, "send-results", "give", source])) as remote:
        remote.write(json.dumps(order).encode() + b"\n")
        for file in wanted:
            answer = _line(remote, _GIVEN)
            if answer.get("problem"):
                record.unread[file.path] = answer["problem"]
            elif answer["size"] >= 0:  # else it was removed there meanwhile
                _refuse_beyond(answer, arrived(file, target), remote)
                now = replace(file, size=answer["size"], mtime_ns=answer["mtime_ns"])
                digest = hashlib.sha256()
                for length in store(
                    now.arriving(target), answer["offset"], now.size, digest, remote
                ):
                    moved(min(done + length, total), total)
                if not _is_sound(now.path, _line(remote, _PROVEN), digest.hexdigest(), record):
                    remove(now.arriving(target))
                elif put_in_place(now, record):
                    yield now
            done += file.size
        if remote.ended() == send_results.GONE:
            raise SourceGone(source)
        remote.expect_success("a transfer")


def _is_sound(path: str, answer: dict[str, Any], digest: str, record: FetchRecord) -> bool:
    """Whether what came is the file; what is noted as unfinished is asked for again."""
    if answer["problem"]:
        record.unread[path] = answer["problem"]
        return False
    if answer["sha256"] != digest or (answer["changed"] and not grows(path)):
        record.unfinished[path] = None
        return False
    return True


def _line(remote: StartedCommand, shape: untrusted.Shape) -> dict[str, Any]:
    line = remote.output.readline(_LONGEST)
    if not line.endswith(b"\n") and len(line) < _LONGEST:
        raise cut_off(remote)
    try:
        value: dict[str, Any] = untrusted.read(line, shape)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(remote.host, problem) from problem
    return value


def _refuse_beyond(answer: Mapping[str, int], count: int, remote: StartedCommand) -> None:
    """The far end continues where we said, or from the beginning."""
    if answer["offset"] > min(count, answer["size"]):
        problem = untrusted.Unexpected(
            f"it resumes at byte {answer['offset']}, and {count} are here"
        )
        raise untrusted.unusable(remote.host, problem)
