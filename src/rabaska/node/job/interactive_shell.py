"""A shell inside an allocation, with all that a program would find: code, data, environment.

`shell FOLDER [-- COMMAND…]` opens it, or runs the command instead, and gives its exit code.
What is written beside the code, or to the output folder, outlives the allocation.
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from typing import Dict, List

from .. import private_files, processes
from ..record import events, plan, secrets_file
from ..record.run_folder import RunFolder
from . import (
    container,
    node_checks,
    prepare_program,
    program_command,
    program_environment,
    results,
    stage_datasets,
    unpacked_code,
)
from .agent import local_space
from .this_job import ThisJob, this_job_from

_ENDS = (signal.SIGTERM, signal.SIGHUP)
# Start-up files of the user may set these anew; what was made ready here comes first.
_IN_IMAGE = ["sh", "-c", "command -v bash >/dev/null && exec bash -i; exec sh -i"]
_KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX")


def main(argv: List[str]) -> int:
    run, words = RunFolder(os.path.realpath(argv[0])), argv[2:]
    try:
        run_plan = plan.load(run)
    except (plan.WrongFormat, ValueError) as problem:
        events.say("{} cannot be read: {}".format(run.plan, problem))
        return 1
    if run_plan is None:
        events.say("{} does not exist: nothing to open".format(run.plan))
        return 1
    for number in _ENDS:
        signal.signal(number, _leave)
    try:
        return open_shell(run, run_plan, words)
    finally:
        node_checks.clean(os.environ)


def open_shell(run: RunFolder, run_plan: plan.Plan, words: List[str]) -> int:
    this_job = this_job_from(os.environ, run_plan, time.time())
    box = container.given(os.environ, run_plan.request.resources)
    with local_space(this_job) as local:
        code = os.path.join(local, "code")
        prepare_program.place_code(run, run_plan, run.place(0), code)
        before = unpacked_code.listing(code)
        places = program_command.Places(
            data=stage_datasets.paths(stage_datasets.place(run, run_plan, local)),
            output=run.output(0),
            checkpoints=run.checkpoints(0),
        )
        environment = _environment(run, run_plan, places, this_job, local)
        if not words:
            greet(this_job, code, program_command.words_for(run_plan.command, [], places))
            words = _IN_IMAGE if box else _shell(local, environment)
        inside = container.start_words(box, code, container.shown(run, places, local))
        if box:
            environment = container.environment(environment, box, run, inside)
        try:
            return _run(inside + words, code, environment)
        finally:
            try:
                _ignore_signals()
            finally:  # also when one came just before
                _keep(code, run.place(0), before)


def _leave(number: int, _frame: object) -> None:
    """The allocation ends: leave by way of every `finally`, which no other signal cuts short."""
    _ignore_signals()
    sys.exit(128 + number)


def _ignore_signals() -> None:
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)


def _keep(code: str, carried: str, before: unpacked_code.Listing) -> None:
    """Keep what was written beside the code, and say what could not be kept."""

    def said(path: str, place: str) -> None:
        events.say("{} is kept as {}: the output already has another one".format(path, place))

    try:
        problems = results.keep_new(code, carried, before, said=said).problems
    except OSError as problem:
        problems = [str(problem)]
    for why in problems:
        events.say("could not keep {}".format(why))


def _environment(
    run: RunFolder,
    run_plan: plan.Plan,
    places: program_command.Places,
    this_job: ThisJob,
    local: str,
) -> Dict[str, str]:
    extra = {
        "RABASKA_RUN": run.name,
        "RABASKA_DEADLINE": "{:.3f}".format(this_job.ask_at),
        "RABASKA_LOCAL": local,
    }
    given = dict(os.environ, **run_plan.variables)
    given.update(secrets_file.load_secrets(run, list(run_plan.secrets)))
    return program_environment.provide(program_command.environment(places, given, extra), run)


def greet(this_job: ThisJob, code: str, words: List[str]) -> None:
    ends = time.strftime("%H:%M", time.localtime(this_job.ask_at))
    events.say("you are on {} until {}, in a copy of your code".format(socket.gethostname(), ends))
    events.say("to train, type: {}".format(" ".join(shlex.quote(word) for word in words)))


def _shell(local: str, environment: Dict[str, str]) -> List[str]:
    """An interactive bash that reads the user's own start-up file before what we made ready."""
    lines = ["[ -f ~/.bashrc ] && . ~/.bashrc"]
    lines += [
        "export {}={}".format(name, shlex.quote(environment[name]))
        for name in _KEPT
        if name in environment
    ]
    start = os.path.join(local, "bashrc")
    with open(start, "w") as stream:
        stream.write("\n".join(lines) + "\n")
    return ["bash", "--rcfile", start, "-i"]


def _run(words: List[str], code: str, environment: Dict[str, str]) -> int:
    # Ctrl-C is for the program; a handler, unlike "ignore", is not passed on to it.
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        process = subprocess.Popen(
            words,
            cwd=code,
            env=environment,
            preexec_fn=private_files.restore_umask,  # noqa: PLW1509 (there is one thread)
        )
        ended = process.wait()
    except OSError as problem:
        events.say("cannot start {}: {}".format(words[0], problem.strerror))
        return 127
    finally:
        # By what is below us: a signal may come before we are told the pid.
        processes.end_all(lambda: processes.descendants(os.getpid()), 1.0)
    return ended if ended >= 0 else 128 - ended
