"""`rabaska plan` as a user types it."""

import json
import os
import subprocess
import sys
import tomllib

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
jobs = 2
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


def test_a_plan_tells_queue_jobs_cost_data_and_rejections(project):
    printed = types(project, "plan", "--offline", "--on", "sdumont", "--total", "60h").stdout

    assert "queue    sequana_gpu_shared" in printed
    assert "cost     60 GPU-hours" in printed
    assert "data     images: /tmp" in printed
    assert "not      nvidia_long: torch 1.13.1 holds no code for K40" in printed


def test_several_clusters_stand_side_by_side(project):
    printed = types(
        project, "plan", "--offline", "--on", "narval", "--on", "sdumont", "--total", "2d"
    ).stdout.splitlines()

    assert printed[0].split()[:2] == ["cluster", "queue"]
    assert [line.split()[0] for line in printed[1:3]] == ["narval", "sdumont"]
    assert "its limit is 7 d" in printed[1]


def test_a_cluster_that_cannot_do_it_stands_beside_the_others_with_the_reason(project):
    words = ["--on", "narval", "--on", "sdumont", "--total", "2d", "--gpu", "a100"]
    printed = types(project, "plan", "--offline", *words).stdout.splitlines()

    row = next(line for line in printed if line.startswith("sdumont"))
    assert row.split()[1] == "none"
    assert "is closest" in row


def test_a_site_that_is_not_asked_is_said_to_be_known_by_its_profile(project):
    told = types(project, "plan", "--offline", "--on", "narval", "--total", "2d")

    assert "narval was not contacted; using its profile: the site was not asked" in told.stderr


def test_without_a_total_the_settings_tell_it(project):
    told = types(project, "plan", "--offline", "--on", "narval")

    assert "24 h" in told.stderr


def test_all_live_clusters_are_compared_when_none_is_named(project):
    told = json.loads(types(project, "plan", "--total", "10h", "--json").stdout)

    compared = [each["outlook"]["cluster"] for each in told["plans"]]
    assert "narval" in compared
    assert "beluga" not in compared


def test_what_nobody_can_do_ends_with_another_exit_code(project):
    told = types(
        project, "plan", "--offline", "--on", "sdumont", "--total", "1h", "--gpu", "h100", code=1
    )

    assert "no queue can run it" in told.stdout


def test_a_cluster_that_is_gone_says_so(project):
    told = types(project, "plan", "--offline", "--on", "cedar", "--total", "1h").stdout

    assert "fir" in told


def test_steps_need_a_measured_pace(project):
    told = types(project, "plan", "--offline", "--on", "narval", "--steps", "1000", code=2)

    assert "no step was measured yet" in told.stderr
    assert "--measure" in told.stderr


def remembers(project, cluster, **report):
    """Somebody who ran the project there before."""
    home, run = project / "home", f"p-{cluster}"
    for folder in ("runs", "reports"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    record = {
        "name": run,
        "cluster": cluster,
        "path": "/r",
        "project": str(project),
        "created": 1.0,
    }
    (home / "runs" / f"{run}.json").write_text(json.dumps(record))
    (home / "reports" / f"{cluster}.json").write_text(json.dumps({"/r": {"mark": "x", **report}}))


def test_steps_take_as_long_as_the_measured_pace_says(project):
    job = {"first_step": 100, "last_step": 700, "begun": 1000.0, "ended": 1060.0}
    remembers(project, "here", jobs=[job])

    told = types(project, "plan", "--offline", "--on", "narval", "--steps", "360000")

    assert "360,000 steps take 10 h at the pace of p-here on here" in told.stderr
    assert "measured  here: 0.1 s per step" in told.stdout


def test_epochs_and_the_whole_training_are_told_by_the_forecast_of_a_run(project):
    forecast = {"unit": "epoch", "seconds_each": 600.0, "total": 90.0}
    remembers(project, "here", forecast=forecast)
    remembers(project, "narval", forecast={**forecast, "seconds_each": 60.0})

    some = types(project, "plan", "--offline", "--on", "narval", "--epochs", "12")
    whole = types(project, "plan", "--offline", "--on", "narval")

    assert "12 epochs take 2 h at the pace of p-here on here" in some.stderr
    assert "90 epochs take 15 h" in whole.stderr
    assert "worth it? yes: 10 times as fast as here" in whole.stdout


def test_a_total_that_is_no_duration_is_refused(project):
    told = types(project, "plan", "--offline", "--on", "narval", "--total", "long", code=2)

    assert "--total is not a duration" in told.stderr


def test_a_time_to_measure_that_is_no_duration_is_refused(project):
    told = types(project, "plan", "--offline", "--on", "narval", "--measure", "brief", code=2)

    assert "--measure is not a duration" in told.stderr


def test_this_computer_stands_beside_a_cluster_with_what_it_has(project):
    words = ["--on", "here", "--on", "narval", "--total", "3d", "--gpus", "0"]
    printed = types(project, "plan", "--offline", *words).stdout.splitlines()

    assert printed[1].split()[:3] == ["here", "here", "0"]
    assert "it has no limit: one job is enough" in printed[1]


def test_a_training_without_gpus_is_planned_with_its_cost_in_core_hours(project):
    words = ["--on", "hades-like", "--total", "10h", "--gpus", "0"]
    profile(
        project, "hades-like", '[partitions.cpu]\nwalltime = "5h"\ncores = 24\nmemory = "64 GB"\n'
    )

    printed = types(project, "plan", "--offline", *words).stdout

    assert "queue    cpu: its limit is 5 h: 3 jobs" in printed
    assert "request  no GPU, 4 cores, 10 GB" in printed
    assert "cost     40 core-hours" in printed


def test_gpus_whose_model_nobody_told_are_called_gpus(project):
    profile(project, "pbs-like", '[partitions.workq]\nwalltime = "5h"\ncores = 4\ngpus = 2\n')

    words = ["--on", "pbs-like", "--total", "10h", "--gpus", "1"]
    printed = types(project, "plan", "--offline", *words).stdout

    assert "request  1 GPU, 2 cores" in printed


def profile(project, name, more):
    folder = project / "home" / "clusters"
    folder.mkdir(parents=True)
    text = f'title = "T"\nscheduler = "slurm"\n[reach]\nhost = "nowhere.invalid"\n{more}'
    (folder / f"{name}.toml").write_text(text)


LONG = '[partitions.gpu]\nwalltime = "7d"\ngpus = 4\ngpu_model = "v100"\ncores = 40\n'


def test_a_long_training_becomes_jobs_of_a_day_and_says_why(project):
    profile(project, "site", LONG)

    printed = types(project, "plan", "--offline", "--on", "site", "--total", "60h").stdout

    assert "jobs     3 of 24 h" in printed
    assert "jobs of a day start sooner than longer ones" in printed


def test_a_site_says_how_long_its_jobs_usually_are(project):
    profile(project, "site", f'[jobs]\nusual = "12h"\n{LONG}')

    printed = types(project, "plan", "--offline", "--on", "site", "--total", "60h").stdout

    assert "jobs     6 of 12 h" in printed
    assert "jobs of 12 h start sooner than longer ones" in printed


STARTS_OVER = """
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--out")
args = parser.parse_args()
model = torch.nn.Linear(2, 1)
for epoch in range(10):
    torch.save(model.state_dict(), os.path.join(args.out, "last.pt"))
"""


RESUMES = """
import os, torch
model, start = torch.nn.Linear(2, 1), 0
last = os.environ.get("RABASKA_CHECKPOINT")
if last:
    state = torch.load(last)
    model.load_state_dict(state["model"])
    start = state["epoch"] + 1
for epoch in range(start, 10):
    state = {"model": model.state_dict(), "epoch": epoch}
    torch.save(state, os.path.join(os.environ["RABASKA_CHECKPOINTS"], "last.pt"))
"""


def test_no_chain_is_planned_for_a_program_that_would_start_over(project):
    profile(project, "site", LONG)
    (project / "train.py").write_text(STARTS_OVER)
    (project / "rabaska.toml").write_text(
        'command = "python train.py --out {checkpoints}"\n[resources]\ngpus = 1\n'
    )

    printed = types(project, "plan", "--offline", "--on", "site", "--total", "60h").stdout

    assert "jobs     1 of" in printed


def test_a_program_that_resumes_by_itself_is_planned_as_a_chain(project):
    profile(project, "site", LONG)
    (project / "train.py").write_text(RESUMES)
    (project / "rabaska.toml").write_text('command = "python train.py"\n[resources]\ngpus = 1\n')

    printed = types(project, "plan", "--offline", "--on", "site", "--total", "60h").stdout

    assert "jobs     3 of 24 h" in printed


def test_the_choice_is_written_where_it_holds_and_nothing_else_changes(project):
    profile(project, "site", LONG)
    file = project / "rabaska.toml"
    before = file.read_text() + '[cluster.site]  # mine\naccount = "a"  # pays\n'
    file.write_text(before)
    file.chmod(0o640)

    words = ["--on", "site", "--total", "60h", "--write"]
    told = types(project, "plan", "--offline", *words).stderr

    assert 'wrote to rabaska.toml under [cluster.site]: queue = "gpu"' in told
    written = file.read_text()
    assert written.startswith(before.rstrip())
    own = tomllib.loads(written)["cluster"]["site"]
    assert own["queue"] == "gpu"
    assert own["account"] == "a"
    assert own["resources"] == {"walltime": "1d", "gpus": 1, "cores": 10}
    assert own["chain"] == {"jobs": 3}
    assert file.stat().st_mode & 0o777 == 0o640
    types(project, "plan", "--offline", *words)
    assert file.read_text() == written


def test_a_choice_is_written_for_one_cluster_only(project):
    told = types(project, "plan", "--offline", "--total", "1h", "--write", code=2).stderr

    assert "--write needs one cluster" in told


@pytest.mark.parametrize(
    "report",
    [
        {"saving": {"epoch": 600.0, "code": "x", "command": []}, "speed": {}},
        {"jobs": [{"epoch": 3, "begun": 0.0, "ended": 1800.0},
                  {"epoch": 5, "begun": 2000.0, "ended": 3200.0}]},
    ],
)  # fmt: skip
def test_epochs_are_known_from_a_run_that_is_over(project, report):
    remembers(project, "here", **report)

    told = types(project, "plan", "--offline", "--on", "narval", "--epochs", "12")

    assert "12 epochs take 2 h at the pace of p-here on here" in told.stderr
