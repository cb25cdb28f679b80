"""Shell: an interactive allocation with environment, data and code in place."""

from collections.abc import Sequence

from rabaska.domain.projects import Project
from rabaska.domain.runs import names_for
from rabaska.jobscript.script import enter_script
from rabaska.journeys.run import made_ready
from rabaska.records.home import Home
from rabaska.remote.place import quoted
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.progress import Reporter
from rabaska.steps.submit import NameTaken, PlanNamed, PlannedRun, create, in_job


def shell(
    project: Project,
    on: str,
    home: Home,
    teller: Reporter,
    *,
    words: Sequence[str] = (),
    terminal: bool = True,
) -> int:
    """Open a shell in an allocation, or run `words` there; its exit code."""
    there = connect(on, home)
    ready, folder = _created(made_ready(project, there, home, teller), project.name, there)
    teller.step(f"asking {on} for an allocation; it ends with the shell")
    return there.place.attach(_script(ready, there, folder, words, terminal), terminal=terminal)


def _created(making: PlanNamed, project: str, there: ConnectedCluster) -> tuple[PlannedRun, str]:
    """A folder for what the shell leaves, under a name that no other one has."""
    for name in names_for(project):
        ready, folder = making(name), f"{there.store}/shells/{name}"
        try:
            create(ready, there, folder)
        except NameTaken:
            continue
        return ready, folder
    raise AssertionError("names never end")


def _script(
    ready: PlannedRun, there: ConnectedCluster, folder: str, words: Sequence[str], terminal: bool
) -> str:
    """Write what runs in the allocation, wait for one, and leave nothing that is empty."""
    inside = [*there.node, "shell", folder, *(["--", *words] if words else [])]
    entering = enter_script(in_job(there, ready.spec.name), ready.plan.about["setup"], inside)
    command = there.scheduler.interactive_command(
        ready.spec, f"{folder}/enter.sh", terminal=terminal
    )
    place, results = quoted([folder]), quoted([f"{folder}/kept/000"])
    return (
        f"leave() {{ rm -f {place}/secrets.json; "
        f'if [ -n "$(find {results} -type f -print -quit)" ]; then'
        f" echo what was written is kept in {results} >&2; else rm -rf {place}; fi; }}\n"
        f"trap leave EXIT\n"
        f"printf %s {quoted([entering])} > {place}/enter.sh; chmod u+x {place}/enter.sh\n"
        f"{quoted(command)}\n"
    )
