"""The command line. Each group of commands is imported when it is used."""

import gc
import os
import sys

from rabaska.node import private_files

TYPE_CHECKING = False  # as a type checker reads it; `--help` shall not wait for `typing`
if TYPE_CHECKING:
    from rabaska.errors import RabaskaError

# By task, each command with its module and a sentence. They are here so that `--help` imports
# nothing.
GROUPS = {
    "Start": {
        "init": ("rabaska.cli.init", "Inspect a project and write its rabaska.toml."),
        "run": ("rabaska.cli.projects", "Send the project to a cluster and start it."),
        "resume": ("rabaska.cli.again", "Continue a stopped run."),
        "rerun": ("rabaska.cli.again", "Start a new run like an earlier one."),
        "shell": ("rabaska.cli.runs", "Open a shell on a compute node, set up as for a run."),
        "code": ("rabaska.cli.pages", "Make the node of a run a host for ssh and editors."),
        "jupyter": ("rabaska.cli.pages", "Open JupyterLab in a job, set up as for a run."),
    },
    "Follow": {
        "status": ("rabaska.cli.runs", "Show a run's status, job by job."),
        "watch": ("rabaska.cli.watch", "Watch runs live, full-screen."),
        "logs": ("rabaska.cli.runs", "Print the program's output."),
        "ui": ("rabaska.cli.ui", "Show runs in a browser, live."),
        "wait": ("rabaska.cli.runs", "Wait until a run ends."),
        "tensorboard": ("rabaska.cli.pages", "Show runs in TensorBoard on this computer."),
        "exec": ("rabaska.cli.runs", "Run a command on the node of a running program."),
        "cancel": ("rabaska.cli.runs", "Stop a run; its results are kept."),
    },
    "Results": {
        "fetch": ("rabaska.cli.runs", "Copy results to this computer."),
        "report": ("rabaska.cli.report", "Write a report on runs: an HTML file to send or print."),
        "show": ("rabaska.cli.runs", "Print a run's plan and its job script."),
        "note": ("rabaska.cli.run_list", "Show or write the note on a run."),
        "forget": ("rabaska.cli.run_list", "Remove a run from the list; its files stay."),
        "delete": ("rabaska.cli.run_list", "Delete runs and their files on the cluster."),
    },
    "Search": {
        "search": ("rabaska.cli.search", "Try many values of the program's options."),
    },
    "Advice": {
        "doctor": ("rabaska.cli.advice", "Check the project before submitting."),
        "plan": ("rabaska.cli.advice", "Choose a queue, a GPU and a number of jobs."),
        "rehearse": ("rabaska.cli.rehearse", "Test that interrupted runs resume correctly."),
        "explain": ("rabaska.cli.advice", "Explain a message and what to do."),
    },
    "Data": {
        "pack": ("rabaska.cli.projects", "Pack the datasets that changed."),
        "data": ("rabaska.cli.data", "List, check and extract packs."),
        "storage": ("rabaska.cli.storage", "Show what is kept on a cluster, and until when."),
        "clean": ("rabaska.cli.storage", "Delete what no run needs any more."),
    },
    "Clusters": {
        "clusters": ("rabaska.cli.clusters", "List, show, add, edit or remove clusters."),
        "use": ("rabaska.cli.use", "Set the project's default cluster."),
    },
    "Shell": {
        "completion": ("rabaska.cli.commands", "Print the completion script for a shell."),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def overview() -> str:
    """What `rabaska --help` prints."""
    width = max(map(len, COMMANDS))
    lines = []
    for heading, group in GROUPS.items():
        lines.append(f"\n{heading}:")
        lines += [f"  {name:{width}}  {sentence}" for name, (_, sentence) in group.items()]
    return _OVERVIEW + "\n".join(lines) + "\n"


_OVERVIEW = """\
Usage: rabaska [OPTIONS] COMMAND [ARGS]...

  Run a training project from your laptop on any HPC cluster.

Options:
  --version   Show the version and exit.
  -h, --help  Show this message and exit.
"""


def main(argv: list[str] | None = None) -> None:
    """The program `rabaska`; its exit codes are those of `rabaska.errors`."""
    if argv is None:  # this process is ours alone
        private_files.close_umask()
    try:
        exit_code = _exit_code(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output left (`rabaska logs | head`): that is no mistake. What is
        # left in our buffer goes nowhere, or Python would complain about it as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        exit_code = 0
    sys.exit(exit_code)


def _exit_code(words: list[str]) -> int:
    if words in (["--help"], ["-h"]):
        # Importing click alone takes three times as long as starting Python.
        sys.stdout.write(overview())
        return 0
    from rabaska.errors import RabaskaError

    try:
        if words[:1] == ["status"] and set(words[1:]) <= {"-a", "--all"}:
            return _status(words[1:])
        if words[:1] == ["pack"] and words[1:] in ([], ["-q"], ["--quiet"]):
            return _pack(words)
        return _any_command(words)
    except KeyboardInterrupt as problem:
        return _stopped(problem)
    except RuntimeError as problem:
        # What Python before 3.12 makes of a Ctrl-C that comes while a class is being made.
        if not isinstance(problem.__cause__, KeyboardInterrupt):
            raise
        return _stopped(problem.__cause__)
    except RabaskaError as problem:
        return _refused(problem)
    except OSError as problem:
        from rabaska.remote.local_disk import disk_error

        explained = disk_error(problem)
        if explained is None:
            raise
        return _refused(explained)


def _refused(problem: "RabaskaError") -> int:
    from rabaska.cli import terminal

    terminal.error(problem)
    return problem.exit_code


def _status(words: list[str]) -> int:
    """The command that is typed most, without the half of its time that click takes."""
    from rabaska.remote import ssh_calls

    ssh_calls.begin(occasion(everything=bool(words)))
    gc.disable()  # what lives for a tenth of a second has nothing to throw away
    from rabaska.cli.quick_status import status

    exit_code = status(everything=bool(words))
    gc.freeze()  # not even when it ends
    return exit_code


def _pack(words: list[str]) -> int:
    """What is packed sooner than checked; the ordinary path for all that is not plain."""
    gc.disable()  # what is imported and listed here stays
    from rabaska.cli import quick_pack

    exit_code = quick_pack.pack(quiet=len(words) > 1)
    gc.freeze()  # not even when it ends
    return _any_command(words) if exit_code is None else exit_code


def occasion(*, everything: bool) -> str:
    """What `status` calls its question, so that the next one can begin with it."""
    return "status-of-all" if everything else "status-of-one"


def _any_command(words: list[str]) -> int:
    import click

    from rabaska.cli.commands import rabaska

    try:
        outcome = rabaska.main(words, prog_name="rabaska", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Abort as problem:
        return _stopped(problem.__cause__)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code


def _stopped(problem: BaseException | None) -> int:
    from rabaska.cli import terminal

    # Whoever was interrupted may have said better what was submitted: `report_if_stopped`.
    told = getattr(problem, "told", False)
    terminal.note("stopped" if told else "stopped; submitted jobs keep running")
    return 130
