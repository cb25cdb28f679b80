"""`search work STUDY [--slots N]`: a job of a search, with as many workers as it has slots."""

import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from typing import Dict

from .. import own_program, timed_command
from ..job import finish, job_folder, kept_environment, node_checks, stage_datasets, stop_signals
from ..job.extend_chain import _environment
from ..job.this_job import ThisJob, this_job_from
from ..record import plan as plans
from ..record.events import say
from ..record.run_folder import RunFolder
from ..vitals.gpu_process import has_gpus
from . import choose, room, worker
from . import study as studies
from .study import Settings, Study
from .trials import Trials
from .worker import Worker

_LOOK = 0.2  # seconds between two looks at the workers
# What would concern a run's own chain: one trial is over, and others wait.
_OF_A_CHAIN = ("RABASKA_CANCEL_REST", "RABASKA_WAITING", "RABASKA_EXCLUDE", "RABASKA_ONE_AT_A_TIME")
_PATIENCE = 120.0  # seconds with a scheduler that does not answer


def main(path: str, slots: int) -> int:
    study = Study(os.path.realpath(path))
    if own_program.is_damaged():
        say("{} is damaged; `rabaska search run` sends it again".format(own_program.program_path()))
        return finish.NOT_READY
    try:
        settings = studies.load(study)
        template = plans.from_json(settings.plan)
    except (plans.WrongFormat, ValueError, KeyError, TypeError) as problem:
        say("{} cannot be read: {}".format(study.settings, problem))
        return finish.NOT_READY
    of_chain = {name: os.environ.pop(name, "") for name in _OF_A_CHAIN}
    keeper = os.environ.get("RABASKA_KEEPER", "")
    signals = stop_signals.Interrupts(int(keeper) if keeper.isdigit() else None)
    signals.install()
    kept_environment.use(os.environ)
    this_job = this_job_from(os.environ, template, time.time())._replace(one_at_a_time=False)
    made = job_folder.make(this_job.local)
    try:
        data = _stage(study, template, made)
        own = room.Slots(os.path.join(made, "slots"))
        _run_slots(Worker(study, settings, this_job, signals, data, own), slots)
        _conclude(study, settings, this_job, of_chain, bool(signals.received()))
    finally:
        stage_datasets.leave()
        job_folder.remove(made)
        node_checks.clean(os.environ)
    return 0


def _stage(study: Study, template: plans.Plan, folder: str) -> Dict[str, str]:
    """Bring the data near, once for all trials of this job."""
    placed = stage_datasets.place(
        RunFolder(study.path), template, folder, freely=template.launch.nodes == 1
    )
    for one in placed:
        say("data: {}".format(stage_datasets.placement_line(one)))
    return stage_datasets.paths(placed)


def _run_slots(given: Worker, slots: int) -> None:
    """As many workers as there are slots; one that is killed is begun again."""
    running = {_begun(given._replace(slot=slot), slots): slot for slot in range(slots)}
    told = False
    while running:
        received = given.signals.received()
        if received and not told:
            told = True
            for process in running:
                os.kill(process, getattr(signal, received, signal.SIGTERM))
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            time.sleep(_LOOK)
        elif process in running:
            slot = running.pop(process)
            if os.WIFSIGNALED(status) and not given.must_stop():
                say(
                    "worker {} was killed (signal {}); another takes its place".format(
                        slot + 1, os.WTERMSIG(status)
                    )
                )
                running[_begun(given._replace(slot=slot), slots)] = slot


def _begun(given: Worker, slots: int) -> int:
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        signals = stop_signals.Interrupts(os.getppid())
        signals.install()
        guarded = slots > 1 and has_gpus(os.environ)
        own = room.Slots(given.slots.folder, given.slot, guarded=guarded)
        worker.work(given._replace(signals=signals, slots=own))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _conclude(
    study: Study, settings: Settings, this_job: ThisJob, of_chain: Dict[str, str], told: bool
) -> None:
    """Where nothing is left, workers that wait are not needed; else one more may be."""
    trials = Trials(study)
    trials.refresh()
    left = not choose.is_over(study, settings, trials)
    if os.path.exists(study.stop) or not left:
        finish.cancel_rest({name: text for name, text in of_chain.items() if text})
    elif this_job.due - time.monotonic() <= 0 or told:
        _submit_one_more(study, settings, this_job)


def _submit_one_more(study: Study, settings: Settings, this_job: ThisJob) -> None:
    """Each submission has a folder of its own, so that no two processes write to one file."""
    own_id = this_job.id.partition("_")[0]
    words = [word.replace("{after}", own_id) for word in settings.growth.get("words", [])]
    submitted = len(study.submissions())
    if not words or submitted >= studies.ROUNDS * max(1, settings.at_once):
        say("trials are left, and no worker follows; `rabaska search run` continues")
        return
    name = "".join(letter if letter.isalnum() else "-" for letter in this_job.id) or "unknown"
    folder = os.path.join(study.submitted, "after-" + name)
    os.makedirs(folder, exist_ok=True)
    mark = uuid.uuid5(uuid.NAMESPACE_URL, folder).hex
    find = " ".join(map(shlex.quote, settings.growth.get("find", [])))
    ours = [sys.executable, own_program.own_path(), "submit", folder, "--once", "--mark", mark]
    process = subprocess.Popen(
        ours + ["--find", find, "--"] + words,
        env=_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    answer = timed_command.answer(process, _PATIENCE)
    if answer.exit_code == 0:
        say("submitted one more worker, for trials are left")
    else:
        said = " ".join(answer.output.decode("utf-8", "replace").split())
        say("no other worker could be submitted: {}".format(said))
