"""Shell: an interactive allocation with environment, data and code in place."""

from collections.abc import Sequence

from rabaska.domain.projects import Project
from rabaska.jobscript.enter import enter_script
from rabaska.journeys.run import made_ready
from rabaska.journeys.station import Station, station
from rabaska.journeys.submit import Voyage, create, in_job
from rabaska.journeys.telling import Teller
from rabaska.records.home import Home
from rabaska.remote.place import quoted


def shell(
    project: Project,
    on: str,
    home: Home,
    teller: Teller,
    *,
    words: Sequence[str] = (),
    terminal: bool = True,
) -> int:
    """Open a shell in an allocation, or run `words` there; its exit code."""
    there = station(on, home)
    ready = made_ready(project, there, home, teller)
    folder = f"{there.store}/shells/{ready.plan.run}"
    create(ready, there, folder)
    teller.step(f"asking {on} for an allocation; it ends with the shell")
    return there.place.attach(_script(ready, there, folder, words, terminal), terminal=terminal)


def _script(
    ready: Voyage, there: Station, folder: str, words: Sequence[str], terminal: bool
) -> str:
    """Write what runs in the allocation, wait for one, and leave nothing that is empty."""
    inside = [*there.node, "inside", folder, *(["--", *words] if words else [])]
    entering = enter_script(in_job(there), ready.plan.about["setup"], inside)
    command = there.scheduler.interactive_command(
        ready.spec, ["bash", f"{folder}/enter.sh"], terminal=terminal
    )
    place, results = quoted([folder]), quoted([f"{folder}/carried/000"])
    return (
        f'leave() {{ if [ -n "$(find {results} -type f -print -quit)" ]; then'
        f" echo what was written is kept in {results} >&2; else rm -rf {place}; fi; }}\n"
        f"trap leave EXIT\n"
        f"printf %s {quoted([entering])} > {place}/enter.sh\n"
        f"{quoted(command)}\n"
    )
