"""Submit a job and remember it in the run folder, whatever becomes of the laptop meanwhile.

`submit RUNFOLDER --links N [--resume] [--after JOB] [--mark MARK] [--once] [--find WORDS] -- …`
runs the scheduler's own submit command. With `--after` it is one more link of the chain that JOB
belongs to. The intention is written before it and the answer after it, so that a submission whose
answer was lost can be told from one that never happened.

A scheduler that did not answer may have taken the job all the same. So each submission carries a
mark (`{submission}` in the command becomes it), and before a second try the queue is asked for that
mark: WORDS print a line for each job, its id first and its mark somewhere in it. Who lost the
connection while we were at it says the same words with the same MARK again, and gets the answer.
With `--once` nothing is submitted under a MARK for which that may have happened before.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from typing import List, NamedTuple, Optional

from .. import files, processes
from ..record import links
from ..record.jobs import submissions
from ..record.runfolder import RunFolder

MARK = "{submission}"
NOT_KNOWN = 75  # "try again later", as sysexits.h spells it

_LOOKS = (1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between looks at a queue that may lag behind
_PAUSE = 0.2  # seconds between looks at a submission that is under way
_ANSWERS = 3  # how many times the queue must say no before it is believed
_NO_ANSWER = re.compile(
    r"timed? ?out|unable to contact|connect|communication|transport|socket|try again|temporar",
    re.IGNORECASE,
)


class Answer(NamedTuple):
    exit_code: int
    said: str
    complained: str

    @property
    def uncertain(self) -> bool:
        """Whether the job may be in the queue although the command failed."""
        return self.exit_code != 0 and bool(_NO_ANSWER.search(self.complained + self.said))


def main(argv: List[str]) -> int:
    words = argparse.ArgumentParser(prog="submit")
    words.add_argument("run")
    words.add_argument("--links", type=int, default=1)
    words.add_argument("--resume", action="store_true")
    words.add_argument("--after", default="", metavar="JOB")
    words.add_argument("--mark", default="")
    words.add_argument("--once", action="store_true")
    words.add_argument("--find", default="", metavar="WORDS")
    words.add_argument("command", nargs="+")
    asked = words.parse_args(argv)
    run, find, mark = RunFolder(asked.run), shlex.split(asked.find), asked.mark or uuid.uuid4().hex

    answer = answered(run, mark)
    if asked.once and (answer is None or answer.exit_code != 0):
        answer = tried_before(run, mark, asked.command)
    elif answer is None and find and not asked.after:
        answer = unanswered(run)
    if answer is None:
        files.append_line(run.jobs, _intention(run, mark, asked, find))
        answer = submitted([word.replace(MARK, mark) for word in asked.command], find, mark)
        remember(run, mark, answer, after=asked.after)
    sys.stdout.write(answer.said)
    sys.stderr.write(answer.complained)
    return answer.exit_code


def _intention(run: RunFolder, mark: str, asked: argparse.Namespace, find: List[str]) -> files.Json:
    return {
        "submission": mark,
        "time": time.time(),
        "links": asked.links,
        "resume": asked.resume,
        "after_link": run.holder(),
        "after": asked.after,
        "find": find,
        "boot": processes.boot_id(),
        "pid": os.getpid(),
        "started": processes.start_id(os.getpid()),
    }


def remember(run: RunFolder, mark: str, answer: Answer, after: str = "") -> None:
    told = {"submission": mark, "after": after}  # type: files.Json
    told.update(answer._asdict())
    files.append_line(run.jobs, told)


def submitted(command: List[str], find: List[str], mark: str) -> Answer:
    """Submit, and try again only when the queue says that the first came to nothing."""
    answer = _run(command)
    if not find or not answer.uncertain:
        return answer
    looked = look_for(find, mark)
    if looked is None:
        return _not_known(answer.complained)
    if looked:
        return Answer(0, looked + "\n", answer.complained)
    again = _run(command)
    looked = look_for(find, mark) if again.uncertain else None
    return Answer(0, looked + "\n", again.complained) if looked else again


def look_for(find: List[str], mark: str) -> Optional[str]:
    """The job that carries `mark`; "" when the queue has none, None when it does not answer."""
    answers = 0
    for pause in _LOOKS:
        time.sleep(pause)
        told = _run(find)
        if told.exit_code != 0:
            continue
        answers += 1
        for line in told.said.splitlines():
            if mark in line:
                return line.split()[0]
        if answers == _ANSWERS:
            return ""
    return None


def answered(run: RunFolder, mark: str) -> Optional[Answer]:
    """What the submission with this mark was told; one that is under way is waited for."""
    last = _settled(run, mark)
    if last.get("exit_code") is None:
        return None
    return Answer(last["exit_code"], last["said"], last["complained"])


def unanswered(run: RunFolder) -> Optional[Answer]:
    """The last submission, if its answer was lost but the queue has its job waiting."""
    last = _settled(run)
    if not last.get("find") or last.get("exit_code") not in (None, NOT_KNOWN):
        return None
    answer = _found(run, last)
    if answer is None or answer.exit_code != 0:
        return answer
    return None if _has_begun(run, answer.said.strip()) else answer


def tried_before(run: RunFolder, mark: str, command: List[str]) -> Optional[Answer]:
    """What became of a submission under this mark that was not answered; None if it may be tried.

    Where no queue can be asked, only a scheduler that is told the mark may hear it again.
    """
    last = _settled(run, mark)
    if not last or last.get("exit_code") not in (None, NOT_KNOWN):
        return None
    if last.get("find"):
        return _found(run, last)
    told = any(MARK in word for word in command)
    return None if told else _not_known("the answer to it was lost")


def _found(run: RunFolder, last: files.Json) -> Optional[Answer]:
    """The job of a submission that was not answered, if the queue has it."""
    mark = str(last["submission"])
    job = look_for([str(word) for word in last["find"]], mark)
    if job is None:
        return _not_known("the queue does not answer")
    if not job:
        return None
    answer = Answer(0, job + "\n", "")
    remember(run, mark, answer, str(last.get("after", "")))
    return answer


def _settled(run: RunFolder, mark: str = "") -> files.Json:
    """The last submission, or the one with this mark, when nobody on this computer is at it."""
    while True:
        each = [one for one in submissions(run) if mark in ("", one["submission"])]
        last = each[-1] if each else {}
        if last.get("exit_code") is not None or not _under_way(last):
            return last
        time.sleep(_PAUSE)


def _under_way(intention: files.Json) -> bool:
    if intention.get("boot") != processes.boot_id():
        return False  # on another login node, or before this one was started anew
    return processes.is_alive(int(intention["pid"]), str(intention["started"]))


def _not_known(said: str) -> Answer:
    why = "nobody knows yet whether the job was taken; `rabaska resume` asks the queue again"
    return Answer(NOT_KNOWN, "", "{}\n{}\n".format(said.strip(), why))


def _has_begun(run: RunFolder, job: str) -> bool:
    """Whether a link ran as this job already: then more links are really wanted."""
    begun = (links.read_begun(run, number) for number in run.links())
    return any(one is not None and (one.job or "").partition("_")[0] == job for one in begun)


def _run(words: List[str]) -> Answer:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = (text.decode("utf-8", "replace") for text in process.communicate())
    return Answer(process.returncode, output, errors)
