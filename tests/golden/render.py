"""Job scripts of every built-in profile, one for each way to launch: `make golden` writes them."""

import sys
from datetime import timedelta
from pathlib import Path

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import Resources
from rabaska.domain.projects import Chain, EnvironmentRecipe, Project
from rabaska.domain.secrets import Secrets
from rabaska.remote.place import Nowhere
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster
from rabaska.steps.carry import Carried
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.environment import resolve
from rabaska.steps.plan_run import job_spec, plan_run

SCRIPTS = Path(__file__).parent / "scripts"
FORMS = ("one-gpu", "gpus", "nodes")


def project(cluster: Cluster, form: str) -> Project:
    """A training program that asks for what the cluster's usual queue has."""
    usual = cluster.partition("") or next(iter(cluster.partitions))
    several = max(usual.gpu_counts, default=usual.gpus)
    gpus = several if form != "one-gpu" else min(usual.gpu_counts, default=min(usual.gpus, 1))
    share = usual.cores_per_gpu or max(usual.cores // max(usual.gpus, 1), 1)
    limit = min(timedelta(days=1), usual.walltime or timedelta(days=1))
    return Project(
        name="cats",
        folder=Path("cats"),
        command=("python", "train.py", "{data}", "--resume", "{checkpoint}"),
        resources=Resources(
            walltime=limit, gpus=gpus, nodes=2 if form == "nodes" else 1,
            tasks=1 if form == "one-gpu" else max(gpus, 1), cores=share,
            memory=usual.memory_per_gpu * max(gpus, 1) or None,
        ),
        launch="program" if form == "one-gpu" else "torchrun",
        environment=EnvironmentRecipe(kind="virtualenv", requirements="torch==2.5.1\n"),
        chain=Chain(jobs=3),
        account="def-prof",
        mail="ada@example.org",
    )  # fmt: skip


def script(name: str, form: str) -> str:
    """The script as it would be submitted, with folders as the profile spells them."""
    cluster = load_cluster(name)
    there = ConnectedCluster(
        cluster=cluster, place=Nowhere("golden scripts ask nobody"), store=cluster.store,
        python=cluster.python, program=Path("0123456789abcdef.pyz"),
    )  # fmt: skip
    asked = project(cluster, form)
    setup = resolve(asked.environment, there, nodes=asked.resources.nodes).setup
    job = job_spec(asked, cluster, there.store)
    carried = Carried(asked, job, there, "code", (), setup, Secrets(), resumes="")
    return plan_run(carried, "cats-7f3a").script


def profiles() -> list[str]:
    return [name for name in names() if name != "here"]


def main() -> None:
    SCRIPTS.mkdir(exist_ok=True)
    wanted = {f"{name}.{form}.sh": (name, form) for name in profiles() for form in FORMS}
    for old in SCRIPTS.iterdir():
        if old.name not in wanted:
            old.unlink()
    for file, (name, form) in wanted.items():
        (SCRIPTS / file).write_text(script(name, form), "utf-8")
    sys.stdout.write(f"wrote {len(wanted)} scripts in {SCRIPTS}\n")


if __name__ == "__main__":
    main()
