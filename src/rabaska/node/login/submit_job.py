"""Submit a job and remember it in the run folder, whatever becomes of the laptop meanwhile.

`submit RUNFOLDER --jobs N [--resume] [--after ID] [--mark MARK] [--since MARK] [--once]
[--find WORDS] [--put END] -- …` runs the scheduler's own submit command. With `--after` it is one
more job of the chain in which a job has that id. The intention is written before it and the answer
after it, by a process of its own that no Ctrl-C and no lost connection ends.

A submission that nobody answered may have been taken all the same (see `unanswered`): it is
waited for, or looked for in the queue, and not made again before a queue had time to show it.
Each carries a mark (`{submission}` in the command becomes it). Who lost the connection while we
were at it says the same words with the same MARK again, and gets the answer. With `--once` nothing
is submitted under a MARK for which that may have happened before. With `--since` nothing is
submitted if somebody else was quicker: the last submission that the asker knows of is not the last
one any more, or the run went on elsewhere. With `--put`, the files `run.json` and `job-more.sh`
whose names have this END take the place of the run's own, if this submission is made and taken.
"""

import argparse
import os
import shlex
import socket
import sys
import time
import traceback
import uuid
from typing import Callable, List, Optional

from .. import files, processes
from ..record import jobs
from ..record.run_folder import RunFolder
from ..record.submissions import NO_ANSWER, NOT_KNOWN, lines, submissions
from . import replaced_files
from .pending_submissions import (
    SubmitAnswer,
    begun_note,
    clear,
    looked_for,
    remember,
    run_noting,
    settled,
)
from .submit_errors import has_id, is_certain, no_answer

MARK = "{submission}"
OTHERS = 76  # somebody else submitted the run meanwhile
INCOMPLETE = 74  # the results that the run starts from are not all there
REFUSED = 77  # no job was taken; never the code of a process that a signal or a bug ended

_STARTING = 60.0  # seconds in which a process writes down what it is about to submit
_PAUSE = 0.2


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="submit")
    parser.add_argument("run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--after", default="", metavar="ID")
    parser.add_argument("--mark", default="")
    parser.add_argument("--since", metavar="MARK")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--find", default="", metavar="WORDS")
    parser.add_argument("--put", default="", metavar="END")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(argv)
    options.find, options.mark = shlex.split(options.find), options.mark or uuid.uuid4().hex
    run = RunFolder(options.run)
    if os.path.exists(run.incomplete):
        sys.stderr.write("the results of the earlier run were not all copied\n")
        return INCOMPLETE
    options.made = times_made(run, options.mark)  # before it is looked for: see `_is_first`

    answer = answered(run, options.mark)
    if options.once and (answer is None or answer.exit_code != 0):
        answer = tried_before(run, options.mark, options.command)
    elif answer is None and not options.after:
        answer = lost_before(run)
        if answer is not None and answer.exit_code == 0 and options.resume:
            files.remove_if_there(run.stop)
    if answer is None:
        complaint = _in_a_process_of_its_own(lambda: _submit(run, options))
        answer = answered(run, options.mark)
        if answer is None:  # the process was killed, or could not write down what it was told
            last = settled(run, options.mark)
            last.setdefault("complained", complaint)
            answer = _found(run, last) or SubmitAnswer(REFUSED, "", complaint or _KILLED)
    if options.put:
        replaced_files.discard(run, options.put)  # where they were not needed
    sys.stdout.write(answer.said)
    sys.stderr.write(answer.complained)
    return answer.exit_code if answer.exit_code in (0, NOT_KNOWN, OTHERS) else REFUSED


_KILLED = "the submitting process was killed; no job was submitted\n"


def _in_a_process_of_its_own(work: Callable[[], None]) -> str:
    """Do `work` where no signal to our group reaches it, and wait for it; what went wrong."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        complaint = ""
        try:
            os.close(reading)
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)  # who listens to us does not wait for it
            work()
        except BaseException:
            complaint = traceback.format_exc()
        finally:
            os.write(writing, complaint.encode("utf-8", "replace"))
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as complaint_of:
        return complaint_of.read().decode("utf-8", "replace")


def times_made(run: RunFolder, mark: str) -> int:
    """How many processes wrote down that they make this submission; all but one were killed."""
    return sum(line.get("submission") == mark and "pid" in line for line in lines(run))


def _submit(run: RunFolder, options: argparse.Namespace) -> None:
    os.makedirs(run.answers, exist_ok=True)
    if not _is_first(run, options.mark, options.made):
        return  # its answer is ours
    files.append_line(run.submissions, _intention(run, options))
    quicker = _quicker(run, options)
    if quicker:
        answer = SubmitAnswer(OTHERS, "", "somebody else submitted it meanwhile\n")
    else:
        before = replaced_files.put(run, options.put) if options.put else {}
        if options.resume:  # by who submits it, never by who comes too late
            before.update(replaced_files.take_away(run.stop))
        command = [word.replace(MARK, options.mark) for word in options.command]
        answer = submitted(run, command, options.find, options.mark)
        if answer.exit_code not in (0, NOT_KNOWN):
            replaced_files.put_back(before)
    remember(run, options.mark, answer, after=options.after)
    recorded = [one["submission"] for one in submissions(run) if one.get("exit_code") is not None]
    if options.mark in recorded:  # else what was noted remains
        clear(run, options.mark)


def _is_first(run: RunFolder, mark: str, made: int) -> bool:
    """Whether nobody else makes the submission that was made `made` times before.

    The same words may be said again while the process that heard them first is still starting:
    the storage decides, once. Who comes later waits until the first has written what it is about.
    """
    try:
        os.close(os.open(begun_note(run, mark, made), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        until = time.monotonic() + float(os.environ.get("RABASKA_SUBMIT_SECONDS") or _STARTING)
        while times_made(run, mark) == made and time.monotonic() < until:
            time.sleep(_PAUSE)
        return False
    return times_made(run, mark) == made  # else it came and went, and removed its note


def _intention(run: RunFolder, options: argparse.Namespace) -> files.Json:
    return {
        "submission": options.mark,
        "time": time.time(),
        "jobs": options.jobs,
        "resume": options.resume,
        "after_job": run.holder(),
        "after": options.after,
        "find": options.find,
        "command": options.command[0],
        "host": socket.gethostname(),
        "boot": processes.boot_id(),
        "pid": os.getpid(),
        "started": processes.start_id(os.getpid()),
    }


def _quicker(run: RunFolder, options: argparse.Namespace) -> bool:
    """Whether another one was made, or may have been, since the last that the asker knew."""
    if options.since is None:
        return False
    if options.resume and os.path.exists(run.moved):
        return True
    possible = (0, None, NOT_KNOWN)
    marks = [
        each["submission"]
        for each in submissions(run)
        if each.get("exit_code") in possible or each["submission"] == options.since
    ]
    first = marks.index(options.since) + 1 if options.since in marks else 0
    return bool(marks[first : marks.index(options.mark)])


def submitted(run: RunFolder, command: List[str], find: List[str], mark: str) -> SubmitAnswer:
    """Submit. Where the answer proves nothing, the job is looked for; `status` goes on with that.

    Only what never reached a server is said a second time.
    """
    answer = run_noting(run, command, mark)
    if is_certain(answer):
        return answer
    job_id = _taken_for(run, find, mark, answer)
    if not job_id and find and _was_not_sent(answer.complained):
        answer = run_noting(run, command, mark)
        if is_certain(answer):
            return answer
        job_id = _taken_for(run, find, mark, answer)
    if job_id:
        return SubmitAnswer(0, job_id + "\n", answer.complained)
    if job_id == "" and not no_answer(answer):
        return answer
    return not_known(answer.complained or answer.said)


def _taken_for(run: RunFolder, find: List[str], mark: str, answer: SubmitAnswer) -> Optional[str]:
    """The job of a command that failed. Who answered in words, and told no id, is done with it: its
    queue shows the job at once, or there is none."""
    if no_answer(answer) or has_id(answer):
        return looked_for(run, find, mark)
    return looked_for(run, find, mark, lag=0.0)


# Slurm: nobody listened when it connected. A failure to send or to receive is told otherwise.
_NOT_REACHED = "Unable to contact slurm controller (connect failure)"


def _was_not_sent(complaint: str) -> bool:
    return _NOT_REACHED in complaint and not NO_ANSWER.search(complaint.replace(_NOT_REACHED, ""))


def answered(run: RunFolder, mark: str) -> Optional[SubmitAnswer]:
    """What the submission with this mark was told; one that is under way is waited for."""
    last = settled(run, mark)
    if last.get("exit_code") is None:
        return None
    return SubmitAnswer(last["exit_code"], last["said"], last["complained"])


def lost_before(run: RunFolder) -> Optional[SubmitAnswer]:
    """The answer that was lost of the last submission, unless a job of that id began already.

    None when it came to nothing, and the next may be made.
    """
    last = settled(run)
    if not last or last.get("exit_code") not in (None, NOT_KNOWN):
        return None
    answer = _found(run, last)
    if answer is None or answer.exit_code != 0:
        return answer
    return None if _has_begun(run, answer.said.strip()) else answer


def tried_before(run: RunFolder, mark: str, command: List[str]) -> Optional[SubmitAnswer]:
    """What became of a submission under this mark that was not answered; None if it may be tried.

    Where no queue can be asked, only a scheduler that is told the mark may hear it again.
    """
    last = settled(run, mark)
    if not last or last.get("exit_code") not in (None, NOT_KNOWN):
        return None
    told = any(MARK in word for word in command)
    if last.get("find") or not told:
        return _found(run, last)
    return None


def _found(run: RunFolder, last: files.Json) -> Optional[SubmitAnswer]:
    """The job of a submission that was not answered; None when it was not taken."""
    mark = str(last.get("submission", ""))
    job_id = looked_for(run, [str(word) for word in last.get("find") or []], mark)
    if job_id is None:
        return not_known(str(last.get("complained") or _NO_WORD))
    if not job_id:
        return None
    answer = SubmitAnswer(0, job_id + "\n", "")
    try:
        remember(run, mark, answer, str(last.get("after", "")))
    except OSError as problem:
        # A full disk; `status` finds the job again when there is room to write it down.
        return answer._replace(complained="the answer could not be recorded: {}\n".format(problem))
    return answer


_NO_WORD = "no answer was recorded, and the queue shows no job so far; try again in a minute"


def not_known(said: str) -> SubmitAnswer:
    why = "not known yet whether the job was submitted; `rabaska status` asks the queue again"
    return SubmitAnswer(NOT_KNOWN, "", "{}\n{}\n".format(said.strip(), why))


def _has_begun(run: RunFolder, job_id: str) -> bool:
    """Whether a job of this id began already: then more jobs are really wanted."""
    begun = (jobs.read_begun(run, number) for number in run.jobs())
    return any(
        one is not None and (one.id or "").partition("_")[0] in job_id.split() for one in begun
    )
