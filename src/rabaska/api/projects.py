"""Functions about a project: init, pack, run, rehearse, shell, plan, doctor, use."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Unpack

from rabaska.api.runs import Folder, has_terminal
from rabaska.domain.projects import Project
from rabaska.domain.run_changes import TypedChanges, as_settings
from rabaska.domain.runs import Checks, Labels
from rabaska.journeys import doctor as _doctor
from rabaska.journeys import init as _init
from rabaska.journeys import pack as _pack
from rabaska.journeys import plan as _plan
from rabaska.journeys import rehearse as _rehearse
from rabaska.journeys import run as _run
from rabaska.journeys import shell as _shell
from rabaska.journeys import use as _use
from rabaska.journeys.doctor import Diagnosis
from rabaska.journeys.init import Proposal
from rabaska.journeys.plan import PlanOptions, Plans
from rabaska.journeys.rehearse import Rehearsal, RehearsalOptions
from rabaska.packing.make_pack import Pack
from rabaska.records.home import home, made_home
from rabaska.settings.project_file import check_command, default_cluster, load
from rabaska.steps.new_run import Submitted
from rabaska.steps.plan_run import PlannedRun
from rabaska.steps.progress import SilentReporter

Overrides = Mapping[str, object]  # keys of rabaska.toml, such as "resources.walltime"


def init(
    folder: Folder = ".", *, force: bool = False, script: str = "", data: str = ""
) -> Proposal:
    """Read a project and write its rabaska.toml; `force` replaces one that is there.

    `script` trains and `data` is the folder with the data, where several could be meant.
    """
    proposal = _init.init(Path(folder).absolute(), script=script, data=data)
    _init.write(proposal, Path(folder).absolute() / "rabaska.toml", overwrite=force)
    return proposal


def pack(folder: Folder = ".") -> tuple[Pack, ...]:
    """Pack every dataset of the project that changed."""
    return _pack.pack(load(Path(folder).absolute()), made_home())


def run(
    folder: Folder = ".",
    *,
    on: str = "",
    arguments: Sequence[str] = (),
    overrides: Overrides | None = None,
    doctor: bool = True,
    anyway: bool = False,
    note: str = "",
    tags: Sequence[str] = (),
    **requests: Unpack[TypedChanges],
) -> Submitted:
    """Send the project to a cluster and submit it; returns at once.

    WouldFail where a check says that it would; `anyway` submits it all the same.

    `arguments` go to the program, as words after `--` do. `overrides` holds keys of
    rabaska.toml, `{"chain.jobs": 4}`; what each job requests has words of its own, such as
    `walltime="2h"` and `memory="16GB"`.
    """
    on = _cluster(folder, on)
    project = _project(folder, on, arguments, {**as_settings(**requests), **(overrides or {})})
    checks, labels = Checks(doctor, anyway), Labels(note, tuple(tags))
    return _run.run(project, on, made_home(), checks=checks, labels=labels)


def preview(
    folder: Folder = ".",
    *,
    on: str = "",
    arguments: Sequence[str] = (),
    overrides: Overrides | None = None,
    doctor: bool = True,
    **requests: Unpack[TypedChanges],
) -> PlannedRun:
    """What `run` would submit, with nothing sent or written: `rabaska run --dry-run`."""
    on = _cluster(folder, on)
    project = _project(folder, on, arguments, {**as_settings(**requests), **(overrides or {})})
    return _run.preview(project, on, home(), checks=Checks(doctor))


def rehearse(
    folder: Folder = ".",
    *,
    on: str = "",
    arguments: Sequence[str] = (),
    cuts: int = 4,
    minutes: float = 5.0,
    seed: int = 0,
) -> Rehearsal:
    """Interrupt short runs of the project, and compare them with an uninterrupted one.

    `minutes` is the longest that a job may take: `--for` on the command line.
    """
    on = _cluster(folder, on)
    options = RehearsalOptions(cuts=cuts, limit=timedelta(minutes=minutes), seed=seed)
    return _rehearse.rehearse(_project(folder, on, arguments), on, made_home(), options)


def shell(
    folder: Folder = ".",
    *,
    on: str = "",
    command: Sequence[str] = (),
    overrides: Overrides | None = None,
    **requests: Unpack[TypedChanges],
) -> int:
    """Open a shell on a compute node, or run `command` there; returns its exit code.

    It uses the terminal of this process: its input, its output and its errors.
    """
    on = _cluster(folder, on)
    settings = {**as_settings(**requests), **(overrides or {})}
    project = _project(folder, on, overrides=settings)
    return _shell.shell(
        project, on, made_home(), SilentReporter(), words=command, terminal=has_terminal()
    )


def plan(
    folder: Folder = ".",
    *,
    on: str | Sequence[str] = (),
    total: str | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    measure: str | None = None,
    gpus: int | None = None,
    gpu: str = "",
    offline: bool = False,
    write: bool = False,
) -> Plans:
    """Which queue, which GPU, how many jobs and what it costs, on one or several clusters.

    `write` puts the choice for the one cluster given into rabaska.toml.
    """
    options = PlanOptions(
        total=total, steps=steps, epochs=epochs, measure=measure, gpus=gpus, gpu=gpu,
        offline=offline, write=write,
    )  # fmt: skip
    clusters = (on,) if isinstance(on, str) else on
    return _plan.plan(Path(folder).absolute(), clusters, options, made_home())


def doctor(
    folder: Folder = ".", *, on: str = "", fix: bool = False, offline: bool = False
) -> Diagnosis:
    """What would make a run of the project fail; with `fix`, what is left after safe repairs."""
    on = _cluster(folder, on)
    project = _project(folder, on)
    diagnosis = _doctor.diagnose(project, on, made_home(), offline=offline)
    if not fix:
        return diagnosis
    _doctor.repair(project, diagnosis.found)
    return replace(diagnosis, found=tuple(one for one in diagnosis.found if not one.safe_fix))


def use(name: str = "", *, folder: Folder = ".") -> str:
    """The project's default cluster, after it was set to `name` where one is given."""
    return _use.use(Path(folder).absolute(), home(), name)


def _cluster(folder: Folder, on: str) -> str:
    """The cluster that is meant; the project's own where nobody names one."""
    return on or default_cluster(Path(folder).absolute())


def _project(
    folder: Folder, on: str, arguments: Sequence[str] = (), overrides: Overrides | None = None
) -> Project:
    project = load(Path(folder).absolute(), cluster=on, overrides=overrides)
    project = replace(project, command=(*project.command, *arguments))
    check_command(project)
    return project
