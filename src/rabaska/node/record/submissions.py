"""submissions.jsonl: what was submitted for a run, and what the scheduler answered."""

import re
from typing import Dict, Iterator, List

from .. import files
from . import field_types
from .run_folder import RunFolder

NOT_KNOWN = 75  # the answer while nobody knows it: "try again later", as sysexits.h spells it
# What schedulers' commands say when their server is not there, or its answer is lost.
NO_ANSWER = re.compile(
    r"timed? ?out|unable to contact|connect|communication|transport|socket|try again|temporar"
    r"|zero bytes|message (?:send|receive|length)|unexpected message|end of (?:file|message)"
    r"|protocol|commlib|\bgdi\b|(?:read|write) error|reset by peer|broken pipe|not respond"
    r"|not known yet",
    re.IGNORECASE,
)
NOT_SENT = "cannot connect to server"  # PBS and Torque: there was nobody who could have taken it


# A line in which a scheduler says which job it took: of `sbatch`, `qsub`, `msub`, `sqsub` or ours.
JOB_ID = re.compile(
    r"^[ \t]*(?:[A-Za-z][\w-]*\.)?\d+(?:\[\d*\])?(?:\.[\w.:-]+)?(?:;\S+)?[ \t\r]*$"
    r"|Submitted batch job \d+|Your job(?:-array)? \d+[. ]|(?:as jobid\s+|Job <)\d+|^here job \d+",
    re.MULTILINE | re.ASCII,
)


def lines(run: RunFolder) -> Iterator[files.Json]:
    """Every line of submissions.jsonl. Success without an id is no answer, whoever wrote it."""
    for line in field_types.submission_lines(run):
        said = str(line.get("said") or "")
        if line.get("exit_code") == 0 and not JOB_ID.search(said):
            told = said + str(line.get("complained") or "")
            line = dict(line, exit_code=NOT_KNOWN, said="", complained=told)
        yield line


def submissions(run: RunFolder) -> List[files.Json]:
    """Each submission with its answer, oldest first; `said` is missing where none came."""
    found: Dict[str, files.Json] = {}
    for line in lines(run):
        mark = str(line.get("submission"))
        found.setdefault(mark, {"submission": mark}).update(line)
    return list(found.values())


def is_unanswered(run: RunFolder) -> bool:
    """Whether nobody knows yet what became of the last submission."""
    each = submissions(run)
    return bool(each) and each[-1].get("exit_code") in (None, NOT_KNOWN)


def jobs_there(run: RunFolder) -> int:
    """The number of the last job that was submitted, as far as anybody can tell."""
    last = before = 0
    for each in submissions(run):
        if each.get("exit_code") == 0:
            if not each.get("after"):
                last = before = int(each.get("after_job") or 0)
            last += int(each.get("jobs") or 1)
    return last + _started_again(run, before)


def _started_again(run: RunFolder, before: int) -> int:
    """Jobs after `before` with the id of an earlier one: their scheduler queued it again."""
    from . import jobs  # only here: it brings every format of checkpoints along

    begun = (jobs.read_begun(run, number) for number in run.jobs() if number > before)
    ids = [one.id for one in begun if one is not None and one.id]
    return len(ids) - len(set(ids))
