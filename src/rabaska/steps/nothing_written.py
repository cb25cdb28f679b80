"""Why nothing came that a run's program wrote, as far as its records show."""

from pathlib import Path

from rabaska.domain.runs import RunState, RunStatus
from rabaska.node import files
from rabaska.node.record.jobs import read_ended
from rabaska.node.record.run_folder import RunFolder

_BEFORE_THE_PROGRAM = ("staging failed", "no time left", "superseded")  # ends of jobs


def why_nothing(now: RunStatus, fetched: Path) -> str:
    """The program is blamed only if it had its chance, and nobody deleted what it wrote."""
    program, why = f"the program of {now.name}", f": {now.reason}" if now.reason else ""
    saved = _saved(fetched)
    if saved:
        return (
            f"{saved} and all else that {program} wrote was deleted in the run's folder; "
            f"`rabaska rerun {now.name}` makes it again"
        )
    if all(job.how in _BEFORE_THE_PROGRAM for job in now.jobs):
        started = "never started" if now.state.over else "has not started"
        return f"{program} {started}{why}; `rabaska status {now.name}` says more"
    if not now.state.over:
        return f"{program} has written nothing so far"
    if now.state is not RunState.FINISHED:
        return f"{program} wrote nothing before it ended{why}"
    elsewhere = "name what it writes elsewhere in `[output] keep`"
    if any("{output}" in word for word in _command(fetched)):
        return (
            f"the output folder of {now.name} is empty: its program wrote nothing there, or "
            f"somebody deleted it; `rabaska logs {now.name}` shows what it printed; {elsewhere}"
        )
    return (
        f"{program} wrote nothing into its output folder; give it the folder as {{output}} in "
        f"`command`, or {elsewhere}"
    )


def _saved(fetched: Path) -> str:
    """The newest checkpoint that a job recorded when it ended."""
    run = RunFolder(str(fetched / "run"))
    ended = [read_ended(run, job) for job in run.jobs()]
    saved = [str(job.checkpoint["path"]) for job in ended if job is not None and job.checkpoint]
    return saved[-1] if saved else ""


def _command(fetched: Path) -> list[str]:
    try:
        plan = files.read_json(str(fetched / "run" / "run.json")) or {}
    except (OSError, ValueError):
        return []
    return [str(word) for word in plan.get("command", [])]
