"""A job whose id was lost is found in its queue by its name, or by its mark."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from rabaska.domain.jobs import JobId
from rabaska.schedulers import named
from rabaska.schedulers.spelling import job_name

RECORDINGS = Path(__file__).parent.parent / "recordings"


def printed(folder, words, name, **programs):
    """What the words of `find` print where these programs print this."""
    for program, text in programs.items():
        (folder / f"{program}.txt").write_text(text)
        (folder / program).write_text(f"#!/bin/sh\ncat {folder}/{program}.txt\n")
        (folder / program).chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "USER": "alice"}
    filled = [word.replace("{name}", name) for word in words]
    return subprocess.run(filled, env=environment, capture_output=True, text=True, check=False)


def find_of(scheduler):
    return named(scheduler, program=("node",), queue="/queue").capabilities.find


def test_grid_engine_lists_jobs_by_name(tmp_path):
    recorded = (RECORDINGS / "sge" / "qstat.xml").read_text()
    jobs = re.findall(r"<JB_job_number>(\d+)<.*?<JB_name>([^<]*)<", recorded, re.DOTALL)
    name = jobs[0][1]

    told = printed(tmp_path, find_of("sge"), name, qstat=recorded)

    wanted = {f"{job} named" for job, called in jobs if called == name}
    assert told.returncode == 0
    assert set(told.stdout.splitlines()) == wanted


def test_moab_lists_jobs_by_name(tmp_path):
    [file] = [each for each in (RECORDINGS / "moab").iterdir() if "JobName=" in each.read_text()]

    told = printed(tmp_path, find_of("moab"), "cats-7f3a", showq=file.read_text())

    assert told.stdout == "881196 named\n"


@pytest.mark.parametrize("scheduler", ["pbs", "torque"])
def test_pbs_selects_jobs_by_name(tmp_path, scheduler):
    told = printed(tmp_path, find_of(scheduler), "cats-7f3a", qselect="71.hades\n72.hades\n")

    assert told.stdout == "71.hades named\n72.hades named\n"


@pytest.mark.parametrize("scheduler", ["pbs", "torque", "sge", "moab"])
def test_a_queue_that_does_not_answer_is_no_empty_one(tmp_path, scheduler):
    for program in ("qselect", "qstat", "showq"):
        (tmp_path / program).write_text("#!/bin/sh\necho no server >&2; exit 3\n")
        (tmp_path / program).chmod(0o755)

    assert printed(tmp_path, find_of(scheduler), "cats-7f3a").returncode == 3


@pytest.mark.parametrize(("code", "said"), [(0, 1), (3, None)], ids=["answers", "is down"])
def test_a_job_of_grid_engine_knows_an_empty_queue_from_a_silent_one(tmp_path, code, said):
    line = "<JB_name>cats-7f3a</JB_name>"
    (tmp_path / "qstat").write_text(f"#!/bin/sh\necho '{line}'; exit {code}\n")
    (tmp_path / "qstat").chmod(0o755)
    waiting = named("sge", program=("node",), queue="/queue").in_job().waiting
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = f'JOB_NAME=cats-7f3a; export WORDS="{waiting}"; printf %s "$WORDS"'
    words = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)

    told = subprocess.run(
        shlex.split(words.stdout), env=environment, capture_output=True, text=True, check=False
    )

    assert told.returncode == code
    assert told.stdout.count("\n") == (said or 0)


@pytest.mark.parametrize("scheduler", ["pbs", "torque"])
def test_jobs_of_others_are_not_selected(tmp_path, scheduler):
    (tmp_path / "qselect").write_text('#!/bin/sh\n[ "$1 $2" = "-u $(id -un)" ] && echo 71\n')
    (tmp_path / "qselect").chmod(0o755)

    assert printed(tmp_path, find_of(scheduler), "cats-7f3a").stdout == "71 named\n"


def test_long_names_that_differ_in_the_middle_are_spelled_differently():
    """The jobs of one would be cancelled with those of the other."""
    spelled = {job_name(f"imagenet-resnet-{size}-7f3a") for size in ("small", "large", "huge")}

    assert len(spelled) == 3
    assert all(re.fullmatch(r"imagen[0-9a-f]{4}-7f3a", name) for name in spelled)


@pytest.mark.parametrize("name", ["2024-cats-7f3a", "42", "-", "ünïcode-7f3a", "x" * 300])
def test_every_name_begins_with_a_letter_and_fits(name):
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,14}", job_name(name))


# What each command tells of one job, and the name in it.
TOLD = {
    "slurm": ("squeue", "my-thesis|(null)\nmy-thesis|(null)\n", ["my-thesis", "my-thesis"]),
    "pbs": ("qstat", "Job Id: 12.hades\n    Job_Name = cats-7f3a\n", ["cats-7f3a"]),
    "torque": ("qstat", "Job Id:\t12\n\tJob_Name = cats-7f3a\n", ["cats-7f3a"]),
    "moab": ("checkjob", (RECORDINGS / "moab" / "checkjob.txt").read_text(), None),
    "sge": ("qstat", "job_number:      12\njob_name:        cats-7f3a\n", ["cats-7f3a"]),
}


@pytest.mark.parametrize("scheduler", TOLD)
def test_the_name_of_a_job_is_told(tmp_path, scheduler):
    program, text, names = TOLD[scheduler]
    asking = named(scheduler, program=("node",), queue="/queue").carried_command(JobId("12"))

    told = printed(tmp_path, asking, "", **{program: text})
    (tmp_path / program).write_text("#!/bin/sh\necho no server >&2; exit 3\n")
    silent = printed(tmp_path, asking, "")

    assert (told.returncode, silent.returncode) == (0, 3)
    assert told.stdout.split() == (names or re.findall("AName: (.*)", text))


def test_a_mark_stands_below_the_name(tmp_path):
    asking = named("slurm", program=("node",), queue="/queue").carried_command(JobId("12"))

    told = printed(tmp_path, asking, "", squeue="a|b|rabaska-7f3a\n")

    assert told.stdout == "a|b\nrabaska-7f3a\n"
