"""The node side as it travels, under every Python that a cluster may have.

Each test runs the zipapp itself, as a process of the interpreter it is about.
"""

import json
import os
import signal
import subprocess
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.needs.pythons import interpreters

from rabaska.node.record import plan
from rabaska.packing.make_pack import PackOptions, pack

TRAINING_SINCE = (3, 8)

# Saves at step 5; the first job then sleeps until it is killed, the second goes on to step 10.
PROGRAM = """
import argparse, os, time, zipfile

words = argparse.ArgumentParser()
words.add_argument("--data")
words.add_argument("--save")
words.add_argument("--output")
words.add_argument("--resume")
asked = words.parse_args()

def save(step):
    path = os.path.join(asked.save, "step-{}.npz".format(step))
    with zipfile.ZipFile(path + ".tmp", "w") as archive:
        archive.writestr("step", str(step))
    os.rename(path + ".tmp", path)

step = 0
if asked.resume:
    with zipfile.ZipFile(asked.resume) as archive:
        step = int(archive.read("step").decode())
while step < 10:
    step += 1
    print("step {} loss {}".format(step, 1 / step))
    if step == 5:
        save(step)
        time.sleep(600)
with open(os.path.join(asked.output, "names.txt"), "w") as stream:
    stream.write(" ".join(sorted(os.listdir(asked.data))))
"""
COMMAND = ["train.py", "--data", "{data}", "--save", "{checkpoints}", "--output", "{output}",
           "--resume", "{checkpoint}"]  # fmt: skip


pytestmark = pytest.mark.pythons
INTERPRETERS = {version: str(path) for version, path in interpreters().items()}


@pytest.fixture(params=list(INTERPRETERS), ids=lambda version: "python{}.{}".format(*version))
def version(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def python(version: tuple[int, int]) -> str:
    return INTERPRETERS[version]


def told(python: str, zipapp: Path, *words: str) -> str:
    """What a word of the zipapp prints under an interpreter."""
    command = [python, str(zipapp), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def inside(python: str, zipapp: Path, code: str, *words: str) -> str:
    """What a few lines print that import the node side from the zipapp."""
    environment = {**os.environ, "PYTHONPATH": str(zipapp)}
    return subprocess.run(
        [python, "-W", "error", "-c", code, *words],
        check=True,
        env=environment,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ).stdout


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("cat", "dog", "naïve"):
        (folder / name).mkdir()
        (folder / name / "1.txt").write_text(name * 1000)
    return folder


def test_enough_interpreters_are_here_for_the_tests_to_mean_something() -> None:
    wanted = 2 if os.environ.get("CI") == "true" else 1

    assert len(INTERPRETERS) >= wanted, f"found only {INTERPRETERS}"


# Adapters, each of which needs the framework it is named for, and a picture of Pillow's.
FRAMEWORKS = (".lightning", ".huggingface", ".keras", ".lazy_picture")


def test_every_module_can_be_imported(python: str, version: tuple[int, int], zipapp: Path) -> None:
    with zipfile.ZipFile(zipapp) as archive:
        names = [name[:-3].replace("/", ".") for name in archive.namelist() if name.endswith(".py")]
    rooms = ["rabaska.node", "rabaska.training"][: 2 if version >= TRAINING_SINCE else 1]
    wanted = [
        name.replace(".__init__", "")
        for name in names
        if name.startswith(tuple(rooms)) and not name.endswith(("__main__", *FRAMEWORKS))
    ]

    said = inside(
        python, zipapp, "import importlib, sys\n"
        "for name in sys.argv[1:]: print(importlib.import_module(name).__file__)", *wanted,
    )  # fmt: skip

    assert len(said.splitlines()) == len(wanted) > 20
    assert all(line.startswith(str(zipapp)) for line in said.splitlines())


def test_a_run_whose_agent_is_killed_goes_on_and_finishes(
    python: str, zipapp: Path, dataset: Path, tmp_path: Path, agents_for: Any
) -> None:
    packed = pack(dataset, tmp_path / "store" / "packs", PackOptions("letters"))
    agents = agents_for(
        PROGRAM,
        command=[python, *COMMAND],
        datasets=[plan.StagedData("letters", packed.identity, "files")],
    )
    agents.python = python
    run = agents.run
    first = agents.start()
    wait_for(Path(run.checkpoints(1), "step-5.npz"), first)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    code, said = agents.job()

    assert code == 0, said
    assert os.path.exists(run.done), said
    assert Path(run.output(2), "names.txt").read_text() == "cat dog naïve"
    report = json.loads(told(python, zipapp, "report", run.path))
    assert report["verdict"]["decision"] == "finished"
    assert report["problems"] == []
    assert [job["how"] for job in report["jobs"]] == ["lost", "finished"]
    assert [job["first_step"] for job in report["jobs"]] == [1, 6]
    assert [job["last_step"] for job in report["jobs"]] == [5, 10]
    assert report["jobs"][1]["steps_redone"] == 0
    assert report["jobs"][1]["resumed_from"] == "checkpoints/step-5.npz"
    assert report["metrics"] == {"loss": 0.1}
    assert report["curve"]["name"] == "loss"
    assert [round(1 / value) for value in report["curve"]["values"]] == list(range(1, 11))
    log = told(python, zipapp, "tail", run.path, "--follow")
    assert log.count("── job ") == 2
    assert log.endswith("step 10 loss 0.1\n")


def test_the_newest_whole_checkpoint_is_chosen(python: str, zipapp: Path, tmp_path: Path) -> None:
    names = ["step-1.npz", "step-2.npy", "step-3.npz", "step-4.npz"]
    for name in names:
        with (tmp_path / name).open("wb") as stream:
            (np.savez if name.endswith("z") else np.save)(stream, np.arange(1000))
    os.truncate(tmp_path / "step-2.npy", 3000)
    flipped = bytearray((tmp_path / "step-3.npz").read_bytes())
    flipped[4000] ^= 1
    (tmp_path / "step-3.npz").write_bytes(bytes(flipped))
    os.truncate(tmp_path / "step-4.npz", 3000)
    for moment, name in enumerate(names):
        os.utime(tmp_path / name, (10**9 + 100 * moment,) * 2)

    said = inside(
        python, zipapp, "import sys; from rabaska.node.checkpoints import newest_checkpoint\n"
        "def told(path, why): print('damaged', path)\n"
        "found = newest_checkpoint.newest_valid(sys.argv[1], ['*.np?'], report=told)\n"
        "print(found.path, found.size)", str(tmp_path),
    )  # fmt: skip

    assert said.splitlines() == [
        "damaged step-4.npz",
        "damaged step-3.npz",
        "damaged step-2.npy",
        f"step-1.npz {(tmp_path / 'step-1.npz').stat().st_size}",
    ]


@pytest.mark.parametrize("mode", ["files", "shards"])
def test_a_pack_is_staged(
    python: str, zipapp: Path, dataset: Path, tmp_path: Path, mode: str
) -> None:
    packed = pack(dataset, tmp_path / "packs", PackOptions("letters"))

    staged = inside(
        python, zipapp, "import sys; from rabaska.node.data.stage import stage\n"
        "print(stage(*sys.argv[1:]))", str(packed.folder), str(tmp_path / "local"), mode,
    ).strip()  # fmt: skip

    if mode == "files":
        texts = sorted(path.read_text() for path in Path(staged).rglob("*.txt"))
        assert texts == ["cat" * 1000, "dog" * 1000, "naïve" * 1000]
    else:
        assert (Path(staged) / "manifest.json").exists()


def test_a_run_with_accents_finishes_where_the_job_speaks_ascii_only(
    python: str, zipapp: Path, agents_for: Any
) -> None:
    agents = agents_for(
        "import sys, os, zipfile\n"
        "path = os.path.join(os.fsencode(sys.argv[1]), u'\\xe9poque-3.npz'.encode('utf-8'))\n"
        "with open(path, 'wb') as stream:\n"
        "    with zipfile.ZipFile(stream, 'w') as archive: archive.writestr('step', '3')\n"
        "print(os.fsencode(sys.argv[2]))\n"
        "sys.exit(0 if len(sys.argv) > 3 else 85)\n",
        command=[python, "train.py", "{checkpoints}", "été", "{checkpoint}"],
        origin=plan.Origin(project="été"),
    )
    agents.python = python
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

    first, second = agents.job(**ascii_only), agents.job(**ascii_only)

    assert (first[0], second[0]) == (0, 0), (first, second)
    report = json.loads(told(python, zipapp, "report", agents.run.path))
    assert report["verdict"]["decision"] == "finished"
    assert "\\xc3\\xa9t\\xc3\\xa9" in report["tail"]


NAMED_OF_ANOTHER_AGE = """
import os, sys
folder = os.fsencode(os.environ["RABASKA_CHECKPOINTS"])
if "RABASKA_CHECKPOINT" in os.environ:
    with open(os.fsencode(os.environ["RABASKA_CHECKPOINT"]), "rb") as stream:
        sys.stdout.write("found {}".format(stream.read()))
    sys.exit(0)
name = NAME
with open(os.path.join(folder, name + b".txt"), "wb") as stream:
    stream.write(b"42")
with open(name + b".csv", "wb") as stream:
    stream.write(b"1")
sys.exit(85)
"""


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("name", [b"mod\xe8le", "modèle".encode()])
@pytest.mark.parametrize("python", [min(INTERPRETERS), max(INTERPRETERS)], ids=str)
def test_a_job_goes_on_from_a_name_that_is_no_text(
    python: tuple[int, int], locale: str, name: bytes, agents_for: Any
) -> None:
    python = INTERPRETERS[python]
    program = NAMED_OF_ANOTHER_AGE.replace("NAME", repr(name))
    agents = agents_for(program, command=[python, "train.py", "{checkpoint}"], patterns=["*.txt"])
    agents.python = python
    # As a job has it: newer Pythons would turn C into UTF-8 by themselves.
    plain = {"LC_ALL": locale, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

    first, second = agents.job(**plain), agents.job(**plain)

    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert "found b'42'" in agents.log(2)
    assert agents.ended(2).how == "finished"
    output = os.listdir(os.fsencode(agents.run.output(2)))
    assert name + b".csv" in output
    # What is recorded is the same name, whatever the locale was.
    resumed = "checkpoints/" + os.fsdecode(name) + ".txt"
    assert json.loads(Path(agents.run.begun(2)).read_text())["resumed_from"] == resumed
    report = subprocess.run(
        [python, str(agents.zipapp), "report", agents.run.path], check=True, capture_output=True,
        env={**os.environ, **plain},
    )  # fmt: skip
    assert json.loads(report.stdout)["jobs"][1]["resumed_from"] == resumed
