"""Plan a search: the plan of each trial's run, and the jobs of its workers."""

import io
import json
import os
import shlex
import tarfile
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import JobId, JobSpec, Resources
from rabaska.domain.projects import Project
from rabaska.domain.search import Search
from rabaska.jobscript.script import Agent, render
from rabaska.node.here.slots import found_gpus
from rabaska.node.record import plan as plans
from rabaska.node.record.plan import Growth
from rabaska.node.search.study import ROUNDS
from rabaska.node.search.trial_run import TOKEN
from rabaska.steps.carry import Carried
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.plan_run import PlannedRun, in_job, plan_run
from rabaska.steps.search_options import (
    Spelled,
    base_command,
    seed_name,
    seeds_of,
    values_file_of,
)
from rabaska.steps.submit import _add

SCRIPT, MORE, SAMPLER = "job.sh", "job-more.sh", "sampler.sh"
_USUAL_AT_ONCE = 4


@dataclass(frozen=True)
class PlannedSearch:
    """A search that is ready to be submitted."""

    name: str
    search: Search
    trial: PlannedRun  # of which each trial's run is made
    spec: JobSpec  # of one submission
    submissions: int  # of that
    slots: int  # trials at once in one job
    script: str
    more: str  # the script of one more worker
    settings: str  # study.json
    sampler: str = ""  # the script that starts Optuna's samplers, where they are used
    grows: bool = False  # whether workers may submit others
    base: Path | None = None  # the file that values are written into, where there is one

    @property
    def at_once(self) -> int:
        return self.search.at_once or 1

    @property
    def hours(self) -> float:
        """Of all workers, at most, before any of them submits another."""
        return self._each * self.spec.jobs * self.submissions

    @property
    def most_hours(self) -> float:
        """With all that workers may submit."""
        return self.hours + self._each * ROUNDS * self.at_once

    @property
    def _each(self) -> float:
        return self.spec.resources.walltime.total_seconds() / 3600


def plan_search(
    carried: Carried, search: Search, styles: Spelled, name: str, optuna: tuple[str, ...] = ()
) -> PlannedSearch:
    """The search of that name; `optuna` are the lines that enter an environment which has it."""
    cluster, project = carried.cluster, carried.project
    base = values_file_of(project, search)
    command = base_command(carried.project, styles, search.space)
    carried = replace(carried, project=replace(carried.project, command=command))
    at_once, slots = _at_once(carried, search)
    search = replace(search, at_once=at_once)
    trial = plan_run(carried, TOKEN)
    spec, submissions = _worker_spec(carried, name, -(-at_once // slots))
    one = replace(spec, jobs=1, at_once=1)
    template = trial.plan._replace(growth=Growth(), id="", jobs=1)
    return PlannedSearch(
        name,
        search,
        replace(trial, plan=template),
        spec,
        submissions,
        slots,
        _script(spec, cluster, carried.setup, slots),
        _script(one, cluster, carried.setup, slots),
        _settings(
            search,
            styles,
            template,
            {
                "growth": _growth(one, cluster),
                "workers": _workers(spec, submissions, slots),
                **_seeds(project, search, styles),
                "base": f"base{base.suffix}" if base else "",
            },
        ),
        _sampler(cluster, name, optuna),
        bool(_growth(one, cluster)),
        base,
    )


def _seeds(project: Project, search: Search, styles: Spelled) -> dict[str, Any]:
    name = seed_name(project, search)
    word = styles[name][1] if name in styles else ""
    return {
        "seeds": seeds_of(project, search, name, word),
        "seed_name": name,
        "repeat_best": search.repeat_best,
    }


def _sampler(cluster: ConnectedCluster, name: str, optuna: tuple[str, ...]) -> str:
    if not optuna:
        return ""
    folder = f"{cluster.store}/searches/{name}"
    start = shlex.join(["python", cluster.node[-1], "search", "sample", folder])
    lines = ["#!/bin/bash", "# The environment of Optuna", "unset PYTHONPATH PYTHONHOME", *optuna]
    return "\n".join([*lines, "", f"exec {start}"]) + "\n"


def _workers(spec: JobSpec, submissions: int, slots: int) -> dict[str, Any]:
    written = asdict(spec)
    written["warn_before"] = spec.warn_before.total_seconds()
    written["resources"]["walltime"] = spec.resources.walltime.total_seconds()
    return {"spec": written, "submissions": submissions, "slots": slots}


def workers_of(written: Mapping[str, Any]) -> tuple[JobSpec, int]:
    """The jobs of a search that was submitted before: of one submission, and how many of those."""
    spec = dict(written["spec"])
    spec["warn_before"] = timedelta(seconds=spec["warn_before"])
    walltime = timedelta(seconds=spec["resources"]["walltime"])
    spec["resources"] = Resources(**{**spec["resources"], "walltime": walltime})
    for name in ("features", "native"):
        spec[name] = tuple(spec[name])
    return JobSpec(**spec), int(written["submissions"])


def _at_once(carried: Carried, search: Search) -> tuple[int, int]:
    """How many trials at once, and how many of them in one job."""
    resources, cluster = carried.job.resources, carried.cluster.cluster
    trials = search.trials or 1
    if not _has_our_queue(cluster):
        wanted = min(search.at_once or _USUAL_AT_ONCE, trials)
        # A site that takes so many jobs of one user has no use for more.
        jobs = (cluster.most_jobs // carried.job.jobs or 1) if cluster.most_jobs else wanted
        return min(wanted, jobs * search.trials_per_gpu), search.trials_per_gpu
    if resources.gpus:
        usual = max(1, len(found_gpus()) // resources.gpus) * search.trials_per_gpu
        return min(search.at_once or usual, trials), search.trials_per_gpu
    # This computer runs one job at a time where it has no GPUs: all workers are in that one.
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    at_once = min(search.at_once or max(1, cores // (resources.cores or 1)), trials)
    return at_once, at_once


def _has_our_queue(cluster: Cluster) -> bool:
    """Whether it is this computer with the queue of rabaska, rather than a login node."""
    return cluster.is_here and cluster.scheduler == "local"


def _worker_spec(carried: Carried, name: str, places: int) -> tuple[JobSpec, int]:
    """The jobs of one submission, and how many submissions there are."""
    cluster, rounds = carried.cluster, carried.job.jobs
    folder = f"{cluster.store}/searches/{name}/logs"
    spec = replace(carried.job, name=name, folder=folder, jobs=rounds)
    if cluster.scheduler.capabilities.array_at_once:
        return replace(spec, jobs=places * rounds, at_once=places), 1
    return spec, places


def _script(spec: JobSpec, cluster: ConnectedCluster, setup: tuple[str, ...], slots: int) -> str:
    python, program = cluster.node
    folder = f"{cluster.store}/searches/{spec.name}"
    extra = ("--slots", str(slots)) if slots > 1 else ()
    agent = Agent(python, program, folder, verb=("search", "work"), extra=extra)
    text = render(
        spec, cluster.scheduler.directives(spec), in_job(cluster, spec.name), setup, agent
    )
    text = text.replace("# rabaska: run ", "# rabaska: workers of search ")
    return text.replace(
        "# Claim the run, stage the data, train, save, and record how it ended",
        "# Stage the data, then take one trial after another, and record how each ended",
    )


def _growth(one: JobSpec, cluster: ConnectedCluster) -> dict[str, list[str]]:
    """How a worker submits another, where it may."""
    profile = cluster.cluster
    if not profile.inside_jobs or profile.submit_from:
        return {}
    # What a job of this computer starts ends with it; so another element of it is asked for.
    after = JobId("{after}") if _has_our_queue(profile) else None
    path = f"{cluster.store}/searches/{one.name}/{MORE}"
    words = cluster.scheduler.submit_command(path, one, after=after)
    return {"words": list(words), "find": list(cluster.find_command(one.name))}


def _settings(
    search: Search, styles: Spelled, template: plans.Plan, submitted: Mapping[str, Any]
) -> str:
    value = {
        "given": dict(search.space),
        "metric": search.metric,
        "goal": search.goal or "max",
        "trials": search.trials,
        "method": search.method,
        "stopping": search.stopping,
        "seed": search.seed,
        "at_once": search.at_once,
        "take": search.take,
        "first_report": search.first_report,
        "reduction": search.reduction,
        "keep_best": search.keep_best,
        "keep_others": search.keep_others,
        "spelled": {name: list(style) for name, style in styles.items()},
        "plan": plans.to_json(template),
        **submitted,
        "id": uuid.uuid4().hex,
        "format": 1,
    }
    return json.dumps(value, indent=1, sort_keys=False) + "\n"


def study_tar(planned: PlannedSearch) -> bytes:
    """The folder of the search, as `search create` reads it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("logs", "trials/0000", "submitted", "more"):
            _add(archive, name, None)
        texts = {
            "study.json": planned.settings,
            SCRIPT: planned.script,
            MORE: planned.more,
            f"trial-{SCRIPT}": planned.trial.script,
        }
        if planned.trial.more:
            texts[f"trial-{MORE}"] = planned.trial.more
        if planned.base:
            texts[f"base{planned.base.suffix}"] = planned.base.read_text("utf-8")
        if planned.sampler:
            texts[SAMPLER] = planned.sampler
        for name, text in texts.items():
            _add(archive, name, text.encode())
        if planned.trial.secrets:
            values = json.dumps(planned.trial.secrets.reveal()).encode()
            _add(archive, "secrets.json", values, mode=0o600)
    return content.getvalue()
