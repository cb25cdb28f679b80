"""Submissions that nobody has answered yet: whether somebody is at them, and what became of them.

What may be known of one, in this order:
- its process, or the scheduler's command that it started, is alive: it is under way;
- the command wrote its answer into `answers/` though its process was killed;
- a job began after it that no other submission explains: that is the one;
- the queue has a job with its mark, or with the run's name and an id that nobody was told;
- the queue answers and has none, long enough after it: it was not taken;
- there is no queue to ask: nobody knows, until the user cancels the run.
"""

import os
import re
import socket
import subprocess
import time
from typing import Any, Dict, List, NamedTuple, Optional

from .. import files, private_files, processes, timed_command
from ..record import jobs
from ..record.run_folder import RunFolder
from ..record.submissions import JOB_ID, NOT_KNOWN, submissions

Json = Dict[str, Any]

NAMED = "named"  # after the id of a job that has the run's name, in what a queue is asked to print

_LOOKS = (1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between looks at a queue that may lag behind
_ANSWERS = 3  # how many times the queue must say no before it is believed
_NOT_FOUND = 127  # as shells say it
_PAUSE = 0.2  # seconds between looks at a submission that is under way
_PATIENCE = 60.0  # seconds with a queue that does not answer
_ELSEWHERE = 600.0  # seconds that a command of another login node may be at work unseen
_LAG = 60.0  # seconds in which a queue shows what it took


class SubmitAnswer(NamedTuple):
    exit_code: int
    said: str
    complained: str


def remember(run: RunFolder, mark: str, answer: SubmitAnswer, after: str = "") -> None:
    record = {"submission": mark, "after": after, "answered": time.time()}  # type: Json
    record.update(answer._asdict())
    files.append_line(run.submissions, record)


def run_noting(run: RunFolder, words: List[str], mark: str) -> SubmitAnswer:
    """Run the scheduler's command so that its process and its answer outlive ours."""
    note = os.path.join(run.answers, mark)

    def sign() -> None:
        process = {"pid": os.getpid(), "started": processes.start_id(os.getpid())}
        files.write_json(note + ".json", process)

    with open(note + ".out", "wb") as said, open(note + ".err", "wb") as complained:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                # Slurm hands the umask of the submitting process on to the job.
                preexec_fn=private_files.umask_restored(sign),  # noqa: PLW1509 - this process has one thread
            )
        except OSError as problem:
            # As a shell says it; what was not started has submitted nothing.
            told = "{}: command not found ({})\n".format(words[0], problem.strerror)
            return SubmitAnswer(_NOT_FOUND, "", told)
        process.wait()
    answer = SubmitAnswer(process.returncode, _text(note + ".out"), _text(note + ".err"))
    if answer.exit_code > 0:
        files.remove_if_there(note + ".out")  # what failed said no job's id; what was killed may
    return answer


def clear(run: RunFolder, mark: str) -> None:
    """Remove what was noted of a submission whose answer is written down: sites count files."""
    for name in os.listdir(run.answers):
        if name.partition(".")[0] == mark:
            files.remove_if_there(os.path.join(run.answers, name))


def begun_note(run: RunFolder, mark: str, made: int) -> str:
    """The note of the one process that makes a submission, after it was made `made` times."""
    return os.path.join(run.answers, "{}.begun-{}".format(mark, made))


def settled(run: RunFolder, mark: str = "") -> Json:
    """The last submission, or the one with this mark, when nobody is at it any more."""
    while True:
        earlier = [one for one in submissions(run) if mark in ("", one["submission"])]
        last = earlier[-1] if earlier else {}
        if last.get("exit_code") is not None or not is_under_way(run, last):
            return last
        time.sleep(_PAUSE)


def is_under_way(run: RunFolder, submission: Json) -> bool:
    if submission.get("exit_code") is not None:
        return False
    if submission.get("boot") == processes.boot_id():
        return any(_lives(one) for one in (submission, _signed(run, submission)))
    # On this login node before it was started anew; or on another, whose processes nobody sees.
    elsewhere = submission.get("host", socket.gethostname()) != socket.gethostname()
    return elsewhere and time.time() - float(submission.get("time") or 0) < _ELSEWHERE


def _lives(process: Json) -> bool:
    if not process.get("pid") or not process.get("started"):
        return False
    return processes.is_alive(int(process["pid"]), str(process["started"]))


def _signed(run: RunFolder, submission: Json) -> Json:
    """The scheduler's command itself, which may have been left alone."""
    note = os.path.join(run.answers, str(submission.get("submission")))
    try:
        return files.read_json(note + ".json") or {}
    except (OSError, ValueError):
        return {}


def looked_for(run: RunFolder, find: List[str], mark: str, lag: float = _LAG) -> Optional[str]:
    """The job of a submission at which nobody is any more; "" when there is none, None when
    nobody knows."""
    job_id = evidence(run, mark)  # type: Optional[str]
    if job_id or not find:
        return job_id or ("" if _is_given_up(run, mark) else None)
    answers = 0
    for pause in _LOOKS:
        time.sleep(pause)
        job_id = evidence(run, mark) or in_queue(run, find, mark)
        if job_id:
            return job_id
        answers += job_id is not None
        if answers == _ANSWERS:
            return "" if _would_show(run, mark, lag) else None
    return None


def _would_show(run: RunFolder, mark: str, lag: float = _LAG) -> bool:
    """Whether a queue had time to show the job, or the scheduler's command never began."""
    ours = _of_mark(run, mark)
    moments = [float(ours.get(moment) or 0) for moment in ("time", "answered")]
    return _never_began(run, ours) or time.time() - max(moments) > lag


def _is_given_up(run: RunFolder, mark: str) -> bool:
    """Where no queue can be asked for a job, only its user knows that there is none: who cancels
    the run says so."""
    ours = _of_mark(run, mark)
    return _never_began(run, ours) or (os.path.exists(run.stop) and _would_show(run, mark))


def _never_began(run: RunFolder, submission: Json) -> bool:
    """Whether its process was killed before it started the scheduler's command, which signs."""
    return submission.get("exit_code") is None and not _signed(run, submission)


def _of_mark(run: RunFolder, mark: str) -> Json:
    return next((one for one in submissions(run) if one["submission"] == mark), {})


def evidence(run: RunFolder, mark: str) -> str:
    """The job of a submission as far as the run folder tells it."""
    return _orphaned(run, mark) or _begun(run, mark)


def _orphaned(run: RunFolder, mark: str) -> str:
    """What the scheduler's command answered after the process that had started it was killed."""
    lines = list(JOB_ID.finditer(_text(os.path.join(run.answers, mark + ".out"))))
    return lines[-1].group().strip() if lines else ""


def _begun(run: RunFolder, mark: str) -> str:
    """The id of a job that began after this submission, and was told to nobody."""
    earlier = submissions(run)
    ours = [one for one in earlier if one["submission"] == mark]
    if not ours or ours[0].get("after_job") is None or earlier[-1] is not ours[0]:
        return ""
    told = told_ids(earlier)
    for number in run.jobs():
        begun = jobs.read_begun(run, number) if number > int(ours[0]["after_job"]) else None
        job_id = (begun.id if begun else "").partition("_")[0]
        if job_id and job_id not in told:
            return job_id
    return ""


def in_queue(run: RunFolder, find: List[str], mark: str) -> Optional[str]:
    """The job that carries `mark`; "" when the queue has none, None when it does not answer.

    Where jobs carry no mark, those of the run's name are followed by NAMED: its job is the one
    that nobody was told.
    """
    said = _output_of(find)
    if said is None:
        return None
    lines = [line.split() for line in said.splitlines() if line.strip()]
    marked = [line[0] for line in lines if any(mark in word for word in line)]
    if marked:
        return marked[0]
    told = told_ids(submissions(run))
    named = [line[0] for line in lines if line[1:] == [NAMED]]
    unknown = [job_id for job_id in named if not told & _spellings(job_id)]
    return unknown[0] if unknown else ""


def told_ids(earlier: List[Json]) -> "set[str]":
    """Every id that a scheduler gave to the run, with and without the name of its server."""
    words = " ".join(str(one.get("said") or "") for one in earlier if one.get("exit_code") == 0)
    return {spelled for word in re.split(r"[\s;]+", words) for spelled in _spellings(word)}


def _spellings(job_id: str) -> "set[str]":
    return {job_id, job_id.partition(".")[0], job_id.partition("_")[0]} - {""}


def _output_of(words: List[str]) -> Optional[str]:
    try:
        answer = timed_command.run(words, _PATIENCE)
    except OSError:
        return None
    return answer.output.decode("utf-8", "replace") if answer.exit_code == 0 else None


def waiting(run: RunFolder) -> Optional[Json]:
    """The last submission, if it has no answer, and what is known of it; for `status`.

    `state` is "under way", "lost", or "not taken"; when it is none of them, its answer was found
    and written down.
    """
    earlier = submissions(run)
    last = earlier[-1] if earlier else {}
    if not last or last.get("exit_code") not in (None, NOT_KNOWN):
        return None
    told = {
        "time": last.get("time"),
        "command": last.get("command", ""),
        "host": last.get("host", ""),
        "said": last.get("complained", ""),
        "findable": bool(last.get("find")),
    }
    return dict(told, state=_state(run, last))


def _state(run: RunFolder, last: Json) -> str:
    if is_under_way(run, last):
        return "under way"
    mark, find = str(last["submission"]), [str(word) for word in last.get("find") or []]
    job_id = evidence(run, mark) or (in_queue(run, find, mark) if find else None)
    if job_id:
        try:
            remember(run, mark, SubmitAnswer(0, job_id + "\n", ""), str(last.get("after", "")))
        except OSError:
            return "lost"  # a full disk; it is found again when there is room to say so
        return "found"
    none = _is_given_up(run, mark) if not find else job_id == "" and _would_show(run, mark)
    return "not taken" if none else "lost"


def _text(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
