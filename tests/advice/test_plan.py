"""`rabaska plan` as a user types it."""

import json
import os
import subprocess
import sys

import pytest

SETTINGS = """
command = "python train.py {data} --resume {checkpoint}"
[data.images]
path = "images"
[environment]
requirements = "requirements.txt"
[resources]
gpus = 1
walltime = "12h"
[chain]
links = 2
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(b"x" * 1000)
    (tmp_path / "rabaska.toml").write_text(SETTINGS)
    (tmp_path / "requirements.txt").write_text("torch==1.13.1\n")
    (tmp_path / "train.py").write_text("import torch\n")
    return tmp_path


def types(project, *words, code=0):
    environment = {**os.environ, "RABASKA_HOME": str(project / "home"), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "rabaska", *words], env=environment, cwd=project,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_a_plan_tells_queue_links_cost_data_and_rejections(project):
    printed = types(project, "plan", "--on", "sdumont", "--total", "60h").stdout

    assert "queue    sequana_gpu_shared" in printed
    assert "cost     60 GPU-hours" in printed
    assert "data     images: /tmp" in printed
    assert "not      nvidia_long: torch 1.13.1 holds no code for K40" in printed


def test_several_clusters_stand_side_by_side(project):
    printed = types(
        project, "plan", "--on", "narval", "--on", "sdumont", "--total", "2d"
    ).stdout.splitlines()

    assert printed[0].split()[:2] == ["cluster", "queue"]
    assert [line.split()[0] for line in printed[1:3]] == ["narval", "sdumont"]


def test_without_a_total_the_settings_tell_it(project):
    told = types(project, "plan", "--on", "narval")

    assert "24 h" in told.stderr


def test_all_live_clusters_are_compared_when_none_is_named(project):
    told = json.loads(types(project, "plan", "--total", "10h", "--json").stdout)

    compared = [each["outlook"]["cluster"] for each in told["plans"]]
    assert "narval" in compared
    assert "beluga" not in compared


def test_what_nobody_can_do_ends_with_another_exit_code(project):
    told = types(project, "plan", "--on", "sdumont", "--total", "1h", "--gpu", "h100", code=1)

    assert "no queue can do it" in told.stdout


def test_a_cluster_that_is_gone_says_so(project):
    told = types(project, "plan", "--on", "cedar", "--total", "1h").stdout

    assert "fir" in told


def test_steps_need_a_measured_speed(project):
    told = types(project, "plan", "--on", "narval", "--steps", "1000", code=2)

    assert "nothing was measured yet" in told.stderr


def test_steps_take_as_long_as_the_measured_speed_says(project):
    home = project / "home"
    (home / "runs").mkdir(parents=True)
    (home / "reports").mkdir()
    run = {"name": "p-1234", "cluster": "here", "path": "/r", "project": str(project),
           "created": 1.0}  # fmt: skip
    (home / "runs" / "p-1234.json").write_text(json.dumps(run))
    link = {"first_step": 100, "last_step": 700, "begun": 1000.0, "ended": 1060.0}
    (home / "reports" / "here.json").write_text(json.dumps({"/r": {"mark": "x", "links": [link]}}))

    told = types(project, "plan", "--on", "narval", "--steps", "360000")

    assert "360,000 steps take 10 h" in told.stderr
    assert "measured: 600 steps per minute on here" in told.stderr


def test_a_total_that_is_no_duration_is_refused(project):
    told = types(project, "plan", "--on", "narval", "--total", "long", code=2)

    assert "--total is not a duration" in told.stderr
