"""Shell: an interactive allocation with environment, data and code in place."""

from collections.abc import Sequence

from rabaska.domain.projects import Project
from rabaska.domain.runs import names_for
from rabaska.jobscript.script import enter_script
from rabaska.records.home import Home
from rabaska.remote.place import quoted
from rabaska.steps.carry import Carried, carry
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.pick_request import with_request
from rabaska.steps.plan_run import PlannedRun, check_job, in_job, job_spec, plan_run
from rabaska.steps.progress import Reporter
from rabaska.steps.submit import NameTaken, create


def shell(
    project: Project,
    on: str,
    home: Home,
    reporter: Reporter,
    *,
    words: Sequence[str] = (),
    terminal: bool = True,
) -> int:
    """Open a shell in an allocation, or run `words` there; its exit code."""
    cluster = connect(on, home)
    project = with_request(project, cluster.cluster, reporter)
    job = job_spec(project, cluster.cluster, cluster.store)
    check_job(project, job, cluster, reporter)
    carried = carry(project, job, cluster, home, reporter)
    planned, folder = _created(carried)
    reporter.step(f"asking {on} for an allocation; it ends with the shell")
    script = _script(planned, cluster, folder, carried.setup, words, terminal=terminal)
    return cluster.place.attach(script, terminal=terminal)


def _created(carried: Carried) -> tuple[PlannedRun, str]:
    """A folder for what the shell leaves, under a name that no other one has."""
    for name in names_for(carried.project.name):
        planned, folder = plan_run(carried, name), f"{carried.cluster.store}/shells/{name}"
        try:
            create(planned, carried.cluster, folder)
        except NameTaken:
            continue
        return planned, folder
    raise AssertionError("names never end")


def _script(
    planned: PlannedRun,
    cluster: ConnectedCluster,
    folder: str,
    setup: tuple[str, ...],
    words: Sequence[str],
    *,
    terminal: bool,
) -> str:
    """Write what runs in the allocation, wait for one, and leave nothing that is empty."""
    command = [*cluster.node, "shell", folder, *(["--", *words] if words else [])]
    entering = enter_script(in_job(cluster, planned.spec.name), setup, command)
    allocate = cluster.scheduler.interactive_command(
        planned.spec, f"{folder}/enter.sh", terminal=terminal
    )
    place, results = quoted([folder]), quoted([f"{folder}/kept/000"])
    return (
        f"leave() {{ rm -f {place}/secrets.json; "
        f'if [ -n "$(find {results} -type f -print -quit)" ]; then'
        f" echo what was written is kept in {results} >&2; else rm -rf {place}; fi; }}\n"
        f"trap leave EXIT\n"
        f"printf %s {quoted([entering])} > {place}/enter.sh; chmod u+x {place}/enter.sh\n"
        f"{quoted(allocate)}\n"
    )
