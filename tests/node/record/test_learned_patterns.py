"""What a program saved under names that no pattern of its run fits."""

import os

import pytest
from made_runs import begin_job, make_run

from rabaska.node.record import learned_patterns, plan, step_tracks


@pytest.fixture
def job(tmp_path):
    """A run with patterns that fit nothing, whose first job has begun."""
    run = make_run(tmp_path, patterns=["epoch*.pt"])
    begin_job(run)
    write(run, "old.pt")
    step_tracks.remember(run, 1, step_tracks.look(run.carried(1), ["epoch*.pt"]))
    return run


def write(run, name, content=b"\x80\x04K\x01."):
    path = os.path.join(run.output(run.holder()), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(content)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("last.pt", "last.pt"), ("checkpoint.pth.tar", "checkpoint.pth.tar"),
        ("deep/step_0300.pth", "step_*.pth"), ("state.pkl", "state.pkl"),
    ],
)  # fmt: skip
def test_what_the_job_wrote_corrects_the_patterns(job, name, pattern):
    write(job, name)

    found = learned_patterns.learn(job, 1, ["epoch*.pt"])

    assert found is not None
    assert (found.path, found.pattern) == (f"output/{name}", pattern)
    assert plan.load(job).patterns == ["epoch*.pt", pattern]


def test_a_state_as_text_is_known_by_its_name(job):
    write(job, "checkpoint-7.json", b'{"step": 7}')
    write(job, "checkpoint-8.json", b'{"step": 8, "weight')

    found = learned_patterns.learn(job, 1, ["epoch*.pt"])

    assert found is not None
    assert (found.path, found.pattern) == ("output/checkpoint-7.json", "checkpoint-*.json")


NO_CHECKPOINTS = [
    "embeddings.npz", "features_cache.pkl", "notes.txt", "epoch1.pt", "metrics.json",
    "checkpoint_options.json",
]  # fmt: skip


@pytest.mark.parametrize("name", NO_CHECKPOINTS)
def test_what_is_no_checkpoint_or_fits_already_does_not(job, name):
    write(job, name)

    assert learned_patterns.learn(job, 1, ["epoch*.pt"]) is None
    assert plan.load(job).patterns == ["epoch*.pt"]


def test_what_is_damaged_does_not(job):
    write(job, "last.pt", b"PK\x03\x04 cut short")

    assert learned_patterns.learn(job, 1, ["epoch*.pt"]) is None
