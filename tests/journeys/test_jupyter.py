"""What a notebook's job is made of: the project, with a server instead of its program."""

from datetime import timedelta
from pathlib import Path

import pytest

from rabaska.domain.jobs import Resources
from rabaska.domain.projects import Chain, EnvironmentRecipe, Project
from rabaska.journeys.jupyter import _with_server
from rabaska.steps.job_server import session
from rabaska.steps.progress import SilentReporter


@pytest.mark.parametrize(
    ("kind", "listed", "added"),
    [
        ("virtualenv", "torch==2.13.0\n", True),
        ("virtualenv", "torch\njupyterlab>=4\n", False),
        ("virtualenv", "notebook\n", False),
        ("virtualenv", "jupyter-server==2.21.1\n", False),
        ("activate", "", False),
        ("current", "", False),
    ],
)
def test_jupyterlab_is_added_to_a_list_that_has_no_server(kind, listed, added):
    recipe = EnvironmentRecipe(kind=kind, requirements=listed)

    made = _with_server(recipe, SilentReporter())

    assert made.requirements == (f"{listed}jupyterlab\n" if added else listed)


def test_a_session_is_one_job_on_one_node_that_resumes_nothing():
    resources = Resources(walltime=timedelta(hours=1), nodes=4, tasks=2, gpus=1)
    project = Project(
        "cats", Path("/cats"), ("python", "train.py"), resources, launch="torchrun",
        resume=("--resume", "{checkpoint}"), chain=Chain(jobs=9),
    )  # fmt: skip

    made = session(project, "jupyter")

    assert made.command[-2:] == ("serve", "jupyter")
    assert (made.resources.nodes, made.resources.tasks, made.resources.gpus) == (1, 1, 1)
    assert (made.launch, made.resume, made.chain.jobs, made.chain.at_most) == ("program", (), 1, 1)
