"""The other nodes of a job: code and data staged on each of them, and nothing left behind.

`stage RUNFOLDER JOB LOCAL [HOST PORT KEYFILE]` and `clean RUNFOLDER JOB LOCAL` are run once on
every node, by srun or our own `on-nodes`; at HOST and PORT the first node waits for the others.
Node-local space has the same path everywhere. Where it is there already, this is the first node,
whose agent stages for itself, or a storage that all nodes share: then nothing is to be done.
"""

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import Iterator, List, Optional, Sequence

from .. import files, own_program, timed_command
from ..data import pack_format, stage
from ..record import plan
from ..record.events import say
from ..record.run_folder import RunFolder
from . import (
    finish,
    job_folder,
    keep_results,
    launch,
    prepare_program,
    program_process,
    results,
    stage_datasets,
    stage_together,
    unpacked_code,
)
from .this_job import Work, say_in_log

_PATIENCE = 60.0  # seconds with nodes that do not answer
_TO_END = 10.0  # seconds for a step that is asked to end
_BEFORE = "before.json"  # beside the code: what lay in it before the program started
_OURS = "rabaska: "

Step = Optional["subprocess.Popen[bytes]"]


def main(argv: List[str]) -> int:
    if len(argv) not in (4, 7) or argv[0] not in ("stage", "clean"):
        say("usage: other-nodes stage|clean RUNFOLDER JOB LOCAL [HOST PORT KEYFILE]")
        return 2
    run, job, local = RunFolder(argv[1]), int(argv[2]), argv[3]
    return (
        stage_here(run, job, local, argv[4:]) if argv[0] == "stage" else clean_here(run, job, local)
    )


def stage_here(run: RunFolder, job: int, local: str, first: Sequence[str] = ()) -> int:
    try:
        run_plan = plan.load(run)
        if run_plan is None:
            return 0
        job_folder.make_at(os.path.dirname(local))
        if os.path.isdir(local):
            return 0
        job_folder.job_folder(os.path.dirname(local))
        with open(_made_by(local), "w"):
            pass
        code = os.path.join(local, "code")
        prepare_program.place_code(run, run_plan, run.place(job), code)
        # Pairs, because names that are no UTF-8 cannot be keys.
        before = sorted([path, list(state)] for path, state in unpacked_code.listing(code).items())
        files.write_json(os.path.join(local, _BEFORE), {"files": before})
        with stage_together.other_meeting(list(first)) as meeting:
            stage_datasets.place(run, run_plan, local, meeting=meeting)
    except (
        OSError,
        unpacked_code.WrongSnapshot,
        pack_format.BadPack,
        stage_datasets.NotOnNode,
        plan.WrongFormat,
        ValueError,
    ) as problem:
        say("{} could not be prepared: {}".format(socket.gethostname(), problem))
        return 1
    return 0


def clean_here(run: RunFolder, job: int, local: str) -> int:
    program_process.end_left_by(program_process.tag(run, job))
    if os.path.exists(_made_by(local)):
        finish.despite_bugs(None, _name_what_goes, local)
        stage.remove(local)
    job_folder.remove_guest(os.path.dirname(local))
    return 0


def _name_what_goes(local: str) -> None:
    """Only the first node's files beside the code are kept: a run must not lose others unnoticed.

    A program that saves a part of its state on each node may have meant to resume from them.
    """
    told = files.read_json(os.path.join(local, _BEFORE))
    if told is None:
        return  # its staging was broken off
    before = {path: tuple(state) for path, state in told["files"]}
    left = list(results.new_files(os.path.join(local, "code"), before))
    if left:
        words = "{} new in the code folder on {}, which is not the first node, not kept: {}; {}"
        counted = "1 file" if len(left) == 1 else "{} files".format(len(left))
        hint = "save to {output} or {checkpoints}, which all nodes share"
        say(words.format(counted, socket.gethostname(), keep_results.some(left), hint))


def _made_by(local: str) -> str:
    return os.path.join(local, "made-by-{}".format(socket.gethostname()))


def begin_staging(
    work: Work, local: str, meeting: Optional[stage_together.FirstMeeting] = None
) -> Step:
    """Start staging on the other nodes; the first is left to the agent, at the same time."""
    if work.plan.launch.nodes < 2:
        return None
    words = _on_every_node(work, "stage", local)
    words += meeting.words if meeting else []
    try:
        with work.lease.quiet:
            step = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        if meeting is not None:
            meeting.is_over = lambda: step.poll() is not None
        return step
    except OSError as problem:
        raise OSError(problem.errno, "cannot reach the other nodes: {}".format(problem))


def finish_staging(step: Step) -> None:
    """Wait for the other nodes; OSError when one of them could not be made ready."""
    if step is None:
        return
    said = step.communicate()[0].decode("utf-8", "replace").strip()
    if step.returncode != 0:
        raise OSError("staging failed on another node: {}".format(said or step.returncode))


def break_off_staging(step: Step) -> None:
    """Before the nodes are cleaned: what still stages would put its files there again."""
    if step is None or step.poll() is not None:
        return
    step.terminate()  # srun and our own launcher end what they started
    try:
        step.communicate(timeout=_TO_END)
    except subprocess.TimeoutExpired:
        step.kill()
        step.communicate()


@contextmanager
def left_clean(work: Work, local: str) -> Iterator[None]:
    """Afterwards no process and no staged data of this job is left on any node."""
    try:
        yield
    finally:
        if work.plan.launch.nodes > 1:
            _clean(work, _on_every_node(work, "clean", local))


def _clean(work: Work, words: List[str]) -> None:
    try:
        answer = timed_command.run(words, _PATIENCE, stderr=None)
    except OSError as problem:
        say("could not clean up other nodes: {}".format(problem))
        return
    for line in answer.output.decode("utf-8", "replace").splitlines():
        own, said = line.startswith(_OURS), line[len(_OURS) :]
        say_in_log(work, said) if own else print(line, flush=True)
    if answer.exit_code != 0:
        say("could not clean up other nodes: exit code {}".format(answer.exit_code))


def _on_every_node(work: Work, word: str, local: str) -> List[str]:
    how = work.plan.launch
    words = launch.on_all(how, tasks=1)
    if how.reach == launch.SRUN:
        words.append("--overlap")  # beside whatever step of the job may still be there
    words += [sys.executable, own_program.own_path(), "other-nodes", word]
    return words + [work.run.path, str(work.job), local]
