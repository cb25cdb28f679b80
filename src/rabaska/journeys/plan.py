"""Plan: which queue, which GPU, how many links, where the data goes, what it costs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from rabaska.checkup.environment import read as read_requirements
from rabaska.domain.amounts import duration, say_duration
from rabaska.domain.clusters import Cluster
from rabaska.domain.gpus import Gpu
from rabaska.domain.placing import Placement, place
from rabaska.domain.planning import Choice, Need, Outlook, outlook
from rabaska.domain.projects import Project
from rabaska.errors import Unreachable, WrongUse
from rabaska.journeys.station import cluster_named, place_of
from rabaska.knowledge.gpus import build_of, gpus
from rabaska.records import reports
from rabaska.records.home import Home
from rabaska.records.runs import remembered
from rabaska.scouting import contents
from rabaska.settings.profile_files import names
from rabaska.settings.project import load

_STARTS = re.compile(r"to start at (\S+)")


@dataclass(frozen=True)
class Wish:
    """What the command line says; the rest comes from rabaska.toml."""

    total: str | None = None
    steps: int | None = None
    gpus: int | None = None
    gpu: str = ""
    ask: bool = False


@dataclass(frozen=True)
class OnePlan:
    outlook: Outlook
    title: str
    data: tuple[Placement, ...] = ()
    start: str = ""  # when a job might start, in the cluster's own words; a guess
    farewell: str = ""


@dataclass(frozen=True)
class Plans:
    need: Need
    basis: str  # where the total time comes from
    plans: tuple[OnePlan, ...]
    measured: tuple[str, ...] = ()  # how fast this project ran before, and where


@dataclass(frozen=True)
class Speed:
    cluster: str
    run: str
    rate: float  # steps per second


def plan(folder: Path, on: Sequence[str], wish: Wish, home: Home) -> Plans:
    """One outlook for each cluster; nothing is sent, and nobody asked unless that is wished."""
    chosen = [cluster_named(name, home) for name in on] or _live(home)
    project = load(folder, cluster=chosen[0].name if len(chosen) == 1 else "here")
    speeds = measured_speeds(project, home)
    total, basis = _total(project, wish, speeds)
    sizes = [
        (each.name, sum(contents.look(path).size for path in each.paths))
        for each in project.datasets
    ]
    need = _need(project, wish, total)
    plans = tuple(_one(need, cluster, sizes, project, ask=wish.ask) for cluster in chosen)
    return Plans(need, basis, plans, tuple(_said(speed) for speed in speeds))


def _live(home: Home) -> list[Cluster]:
    known = [cluster_named(name, home) for name in names(home.profiles)]
    return [each for each in known if each.status == "live" and each.partitions]


def _one(
    need: Need, cluster: Cluster, sizes: list[tuple[str, int]], project: Project, *, ask: bool
) -> OnePlan:
    found = outlook(need, cluster, gpus())
    if found.choice is None:
        return OnePlan(found, cluster.title, farewell=cluster.farewell)
    queue = cluster.partition(found.choice.queue)
    return OnePlan(
        found, cluster.title,
        data=place(sizes, cluster, queue, found.choice.memory),
        start=_start(found.choice, cluster, project) if ask else "",
        farewell=cluster.farewell,
    )  # fmt: skip


def _need(project: Project, wish: Wish, total: timedelta) -> Need:
    asked = project.resources
    wanted = wish.gpus if wish.gpus is not None else asked.gpus * asked.nodes
    told = any("{checkpoint" in word for word in (*project.command, *project.resume))
    return Need(
        total=total,
        gpus=wanted,
        gpu=wish.gpu or asked.gpu_model,
        resumes=project.chain.links > 1 or told or bool(project.resume),
        spreads=project.launch != "program",
        cores=asked.cores or 0,
        memory=(asked.memory or 0) * asked.nodes,
        unfit=_unfit(project.environment.requirements),
    )


def _unfit(requirements: str) -> dict[str, str]:
    """The GPUs that a pinned framework holds no code for, each with the reason."""
    found: dict[str, str] = {}
    for each in read_requirements(requirements):
        build = build_of(each.name, each.version, each.cuda) if each.version else None
        if build is None:
            continue
        version = ".".join(map(str, each.version))
        for name, gpu in gpus().items():
            if not _runs(gpu) or (gpu.capability and not build.runs_on(gpu)):
                found[name] = f"{each.name} {version} holds no code for {name.upper()}"
    return found


def _runs(gpu: Gpu) -> bool:
    """Official builds are for CUDA; others are the site's own affair."""
    return gpu.backend == "cuda"


def _total(project: Project, wish: Wish, speeds: Sequence[Speed]) -> tuple[timedelta, str]:
    if wish.total:
        try:
            return duration(wish.total), f"training takes {say_duration(duration(wish.total))}"
        except ValueError as problem:
            raise WrongUse("--total is not a duration", why=str(problem)) from None
    if wish.steps:
        if not speeds:
            raise WrongUse(
                "nothing was measured yet", why="no run of this project has printed its steps",
                hint="run it for a few minutes first, or give --total",
            )  # fmt: skip
        span = timedelta(seconds=wish.steps / speeds[0].rate)
        how = f"{wish.steps:,} steps take {say_duration(span)} at the speed of {speeds[0].run}"
        return span, how
    span = project.resources.walltime * project.chain.links
    return span, f"training takes {say_duration(span)}: `walltime` times `links` of rabaska.toml"


def measured_speeds(project: Project, home: Home) -> tuple[Speed, ...]:
    """Steps per second of this project's newest run on each cluster, as far as it was told."""
    found: dict[str, Speed] = {}
    for record in remembered(home.runs):
        if record.project != str(project.folder):
            continue
        told = reports.recalled(home.reports, record.cluster).get(record.path, {})
        rate = _rate(told.get("links", []))
        if rate:
            found[record.cluster] = Speed(record.cluster, record.name, rate)
    return tuple(found.values())


def _rate(links: Sequence[dict[str, Any]]) -> float:
    for link in reversed(links):
        first, last = link.get("first_step"), link.get("last_step")
        begun, ended = link.get("begun"), link.get("ended")
        if None not in (first, last, begun, ended) and last > first and ended > begun:
            return float(last - first) / float(ended - begun)
    return 0.0


def _said(speed: Speed) -> str:
    return f"measured: {speed.rate * 60:.3g} steps per minute on {speed.cluster} ({speed.run})"


def _start(choice: Choice, cluster: Cluster, project: Project) -> str:
    """What `sbatch --test-only` says; it submits nothing, and is a guess."""
    if cluster.scheduler != "slurm" or cluster.is_here or cluster.farewell:
        return ""
    words = [
        f"--time={round(choice.walltime.total_seconds() // 60)}", f"--nodes={choice.nodes}",
        *([f"--account={project.account}"] if project.account else []),
        *([f"--gres=gpu:{choice.gpus}"] if choice.gpus else []),
    ]  # fmt: skip
    queue = cluster.partition(choice.queue)
    if queue:
        words += [f"--partition={queue.called}"] if queue.called and cluster.names_queue else []
        words += queue.native
    try:
        said = place_of(cluster).run(f"sbatch --test-only {' '.join(words)} --wrap=true")
    except Unreachable as problem:
        return f"not known: {problem.what}"
    found = _STARTS.search(said.output + said.errors)
    return f"perhaps at {found[1]} (a guess of the scheduler)" if found else said.complaint
