"""Which builds run on which GPUs, as the tutorials and the frameworks' own matrices say."""

import pytest

from rabaska.domain.gpus import parsed
from rabaska.knowledge.gpu_facts import build_of, builds, gpus
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster

RUNS = [
    ("torch", "1.2.0", "", "k40", True),
    ("torch", "1.13.1", "", "k40", False),
    ("torch", "1.13.1", "cu117", "k40", False),
    ("torch", "1.13.1", "cu117", "k80", True),
    ("torch", "1.2.0", "cu92", "k40", True),
    ("torch", "1.13.1", "", "k80", True),
    ("torch", "2.5.1", "", "v100", True),
    ("torch", "2.5.1", "", "h100", True),
    ("torch", "2.5.1", "", "k80", False),
    ("torch", "2.5.1", "cu118", "k80", True),
    ("torch", "2.7.0", "cu128", "v100", False),
    ("torch", "2.9.0", "", "v100", True),
    ("torch", "2.9.0", "", "p100", False),
    ("torch", "2.12.0", "", "v100", False),
    ("torch", "2.12.0", "cu126", "v100", True),
    ("torch", "2.15.0", "", "v100", False),
    ("torch", "2.15.0", "", "a100", True),
    ("tensorflow", "2.3.1", "", "k40", True),
    ("tensorflow", "2.18.0", "", "k80", False),
    ("tensorflow", "2.18.0", "", "t4", True),
]


@pytest.mark.parametrize(("framework", "version", "cuda", "gpu", "runs"), RUNS)
def test_a_build_runs_where_the_matrices_say(framework, version, cuda, gpu, runs):
    build = build_of(framework, parsed(version), cuda)

    assert build is not None
    assert build.runs_on(gpus()[gpu]) is runs


def test_nothing_is_claimed_of_a_build_nobody_knows():
    assert build_of("jax", (0, 4)) is None
    assert build_of("torch", (2, 5), "rocm6") is None


def test_every_gpu_of_a_profile_is_in_the_table():
    kinds = {each.kind for name in names() for each in load_cluster(name).partitions if each.kind}

    assert kinds <= set(gpus())


def test_no_two_builds_are_meant_by_one_version():
    for build in builds():
        meant = [
            each for each in builds() if each.is_meant(build.framework, build.since, build.cuda)
        ]

        assert meant == [build]
