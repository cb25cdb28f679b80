"""The page about several nodes shows the command lines that jobs really start."""

import re

import pytest
from pages import REPOSITORY

from rabaska.node.job.launch import Allocation, launched
from rabaska.node.record.plan import Launch

PAGE = (REPOSITORY / "docs" / "guides" / "several-gpus-and-nodes.md").read_text("utf-8")


@pytest.mark.parametrize("form", ["program", "torchrun", "srun", "mpi"])
def test_the_page_shows_what_is_run_for_each_form_of_launch(form):
    shown = re.search(rf"^{form} +(\S.*)$", PAGE, re.MULTILINE)
    how = Launch(form=form, nodes=2, tasks=2, cores=3, mpi="pmix")

    where = Allocation("node1", 10007, "7", "/local")
    words = launched(["python", "train.py"], how, where, ["task"])

    assert shown is not None
    pieces = [re.escape(piece.strip()) for piece in shown[1].split("…")]
    assert re.fullmatch(" .* ".join(pieces), " ".join(words)), " ".join(words)
