"""Programs inside a container, run on this computer by a real Apptainer (tests/needs/apptainer)."""

import functools
import http.server
import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from tests.needs import apptainer

from rabaska.node.job.container import RUNTIMES

pytestmark = [pytest.mark.apptainer, pytest.mark.slow]

# Says where it runs and what it sees; the first job goes on until it is asked to stop.
TRAIN = """
import glob, json, os, signal, sys, time

step = json.load(open(sys.argv[3]))["step"] if len(sys.argv) > 3 else 0
data, output = sys.argv[1:3]
told = {
    "inside": os.path.isdir("/.singularity.d"), "data": sorted(os.listdir(data)),
    "code": sorted(os.listdir(".")), "local": os.path.isdir(os.environ["RABASKA_LOCAL"]),
    "watched": os.environ["RABASKA_WATCH"], "training": "rabaska" in os.environ["PYTHONPATH"],
    "colour": os.environ.get("COLOUR"), "rank": os.environ.get("RANK"), "uid": os.getuid(),
}
json.dump(told, open(os.path.join(output, "told-%s.json" % os.environ["RABASKA_JOB"]), "w"))


def stop(number, frame):
    json.dump({"step": step, "signal": number}, open(output + "/checkpoint-%03d.json" % step, "w"))
    sys.exit(0)


signal.signal(signal.SIGUSR1, stop)
while step < 3 or os.environ["RABASKA_JOB"] == "1":
    step += 1
    print("step", step, flush=True)
    time.sleep(0.2)
"""

SETTINGS = """
name = "boxed"
command = "python train.py {{data}} {{output}} {{checkpoint}}"
{launch}
[data.numbers]
path = "numbers"

[environment]
image = "{image}"
variables = {{COLOUR = "blue"}}

[resources]
walltime = "8s"
tasks = 2

[chain]
jobs = 2
signal = "USR1"
grace = "3s"

[checkpoints]
patterns = ["checkpoint-*.json"]
"""


@pytest.fixture
def boxed(user, monkeypatch):
    monkeypatch.setenv("PATH", f"{apptainer.PROGRAMS}:{os.environ['PATH']}")
    # Root of this machine lacks a capability that Apptainer would give it.
    monkeypatch.setenv("APPTAINER_USERNS", "1")
    monkeypatch.setenv("PYTHONPATH", "/of/the/host")
    user.write("train.py", TRAIN)

    def settings(image=str(apptainer.IMAGE), launch=""):
        user.write("rabaska.toml", SETTINGS.format(image=image, launch=launch))

    object.__setattr__(user, "set_up", settings)
    settings()
    return user


def told_by(user, run, job=1):
    runs = user.home / "store" / "runs" / run / "output"
    return json.loads((runs / f"told-{job}.json").read_text())


def test_a_chain_of_jobs_saves_when_signalled_inside_and_goes_on(boxed):
    run = boxed.types("run", "--walltime", "16s").output.strip()
    boxed.until(lambda status: status["jobs"] and status["jobs"][0]["first_step"], run)
    beside = boxed.types("exec", run, "--", "ls", "-d", "/.singularity.d", "/of/the/host", code=2)
    boxed.types("wait", run)

    first, second = told_by(boxed, run, 1), told_by(boxed, run, 2)
    assert first == second
    assert first["inside"]
    assert beside.output.strip() == "/.singularity.d", beside
    assert len(first["data"]) == 3
    assert "train.py" in first["code"]
    assert (first["local"], first["watched"], first["training"]) == (True, "1", True)
    assert first["colour"] == "blue"
    jobs = boxed.status(run)["jobs"]
    assert [job["how"] for job in jobs] == ["time limit", "finished"], jobs
    assert jobs[1]["resumed_from"].startswith("output/checkpoint-0")


def test_an_image_of_the_project_is_sent_and_the_programs_exit_code_comes_back(boxed):
    shutil.copyfile(apptainer.IMAGE, boxed.project / "my.sif")
    boxed.set_up("my.sif")
    ends = TRAIN.replace('or os.environ["RABASKA_JOB"] == "1"', "") + "sys.exit(7)\n"
    boxed.write("train.py", ends)

    said = boxed.types("run", "--jobs", "1")
    run = said.output.strip()
    boxed.types("wait", run, code=7)

    told = told_by(boxed, run)
    assert told["inside"]
    assert "my.sif" not in told["code"]
    assert "image my.sif: 1 file in the store" in said.errors
    assert len(list((boxed.home / "store" / "envs").glob("*.sif"))) == 1
    assert "exit code 7" in boxed.status(run)["reason"]


@pytest.fixture
def served():
    """The image at an address from which it can be pulled."""
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(apptainer.IMAGE.parent)
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_image_is_pulled_once(boxed, served):
    address = f"http://127.0.0.1:{served.server_port}/image.sif"
    boxed.set_up(address)
    boxed.write("train.py", TRAIN.replace('or os.environ["RABASKA_JOB"] == "1"', ""))

    first = boxed.types("run", "--jobs", "1")
    second = boxed.types("run", "--jobs", "1")

    assert f"image {address}: pulled once on here" in first.errors
    assert "pulled" not in second.errors
    run = first.output.strip()
    boxed.types("wait", run)
    assert told_by(boxed, run)["inside"]
    left = sorted(path.name for path in (boxed.home / "store" / "envs").iterdir())
    assert [name for name in left if not name.startswith(".")] == [
        name for name in left if name.endswith(".sif")
    ]


def test_an_image_that_cannot_be_pulled_is_told_before_the_queue(boxed, served):
    boxed.set_up(f"http://127.0.0.1:{served.server_port}/no-such.sif")

    said = boxed.types("run", code=11).errors

    assert "cannot be pulled on here" in said
    assert "nothing was submitted" in said


def test_torchrun_starts_its_workers_inside_and_each_is_asked_to_save(boxed):
    """Of torch only the starter, in its words: the image has none."""
    boxed.set_up(launch='launch = "torchrun"')
    (boxed.project / "torch" / "distributed").mkdir(parents=True)
    for package in ("torch", "torch/distributed"):
        boxed.write(f"{package}/__init__.py", "")
    boxed.write(
        "torch/distributed/run.py",
        """
        import os, subprocess, sys

        words = sys.argv[1:]
        count = int([w for w in words if w.startswith("--nproc-per-node=")][0].partition("=")[2])
        while words[0].startswith("-"):
            words.pop(0)
        assert os.path.isdir("/.singularity.d")
        crew = [
            subprocess.Popen([sys.executable, *words], env=dict(os.environ, RANK=str(rank)))
            for rank in range(count)
        ]
        sys.exit(max(one.wait() for one in crew))
        """,
    )
    boxed.write(
        "train.py",
        TRAIN.replace('"/checkpoint-%03d', '"/checkpoint-" + os.environ["RANK"] + "-%03d'),
    )

    run = boxed.types("run", "--jobs", "1").output.strip()
    boxed.types("wait", run, code=None)

    output = boxed.home / "store" / "runs" / run / "output"
    saved = sorted(path.name[:13] for path in output.glob("checkpoint-*"))
    assert saved == ["checkpoint-0-", "checkpoint-1-"]


def test_where_nothing_runs_images_that_is_told_before_the_queue(boxed, monkeypatch):
    monkeypatch.setenv("PATH", _without_runtimes(os.environ["PATH"]))

    said = boxed.types("run", code=11).errors

    assert "there is no apptainer or singularity on here" in said
    assert '`modules = ["apptainer"]`' in said


def _without_runtimes(path):
    folders = path.split(os.pathsep)
    return os.pathsep.join(
        folder for folder in folders if not any((Path(folder) / name).exists() for name in RUNTIMES)
    )
