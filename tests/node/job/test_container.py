"""The words that start a program in a container; real ones are run in tests/voyages."""

import pytest

from rabaska.node.job import container, launch
from rabaska.node.job.container import Container
from rabaska.node.job.program_command import Places
from rabaska.node.record.plan import Launch, RequestedResources
from rabaska.node.record.run_folder import RunFolder

BOX = Container("apptainer", "/store/x.sif", ["/project/big:/big"], "--nv")
INSIDE = container.start_words(BOX, "/local/code", ["/store/runs/a"])
WHERE = launch.Allocation("node1", 12345, "7", "/local/job")
TASK = ["python3", "/store/node/n.pyz", "task"]


def test_folders_image_and_drivers_are_named():
    assert INSIDE == [
        "apptainer", "--quiet", "exec", "--pwd", "/local/code", "--nv",
        "--bind", "/store/runs/a", "--bind", "/project/big:/big", "/store/x.sif",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("requested", "devices", "option"),
    [
        ({}, ["/dev/nvidiactl"], ""),
        ({"gpus": 1}, ["/dev/nvidiactl"], "--nv"),
        ({"gpus": 1}, [], "--nv"),
        ({"gpus": 1}, ["/dev/kfd"], "--rocm"),
        ({"gpus": 1, "gpu_model": "mi250"}, [], "--rocm"),
        ({"gpus": 1}, ["/dev/kfd", "/dev/nvidiactl"], "--nv"),
    ],
)
def test_drivers_are_those_of_the_gpus_that_were_asked_for(requested, devices, option):
    assert container.gpu_option(RequestedResources(**requested), devices.__contains__) == option


@pytest.mark.parametrize(
    ("how", "outside"),
    [
        (Launch(), []),
        (Launch("torchrun", 1, 2), []),
        (Launch("torchrun", 2, 2), ["srun"]),
        (Launch("srun", 2, 4), ["srun"]),
        (Launch("mpi", 2, 2, mpi="mpirun"), ["mpirun", "-n", "4"]),
        (Launch("mpi", 2, 2, mpi="pmix"), ["srun"]),
    ],
)
def test_every_launch_form_enters_one_container_for_each_process(how, outside):
    words = launch.launched(["python", "a.py"], how, WHERE, TASK, INSIDE)

    place = words.index("apptainer")
    assert words[place : place + len(INSIDE)] == INSIDE
    assert words[: len(outside)] == outside
    assert bool(place) == bool(outside)
    assert "a.py" in words[place + len(INSIDE) :]
    assert ("task" in words[place:]) == launch.through_tasks(how)


def test_what_lies_in_another_folder_is_shown_once(tmp_path, monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)
    run = RunFolder(str(tmp_path / "runs" / "a"))
    places = Places({"x": str(tmp_path / "job" / "data" / "x"), "y": "/shared/y"}, "o", "c")

    paths = container.shown(run, places, str(tmp_path / "job"))

    assert paths[:2] == [run.path, str(tmp_path / "job")]
    assert "/shared/y" in paths
    assert str(tmp_path / "job" / "data" / "x") not in paths


def test_the_hosts_python_is_not_spoken_of_inside_unless_somebody_wants_it():
    given = {"PYTHONPATH": "/host", "VIRTUAL_ENV": "/v", "HOME": "/h"}

    assert container.without_host_python(given, {}) == {"HOME": "/h", "PYTHONNOUSERSITE": "1"}
    wanted = container.without_host_python(given, {"PYTHONPATH": "src"})
    assert wanted["PYTHONPATH"] == "src"


def test_a_node_without_apptainer_or_without_the_image_is_told(tmp_path):
    (tmp_path / "singularity").write_text("#!/bin/sh\n")
    (tmp_path / "singularity").chmod(0o755)
    named = {container.IMAGE: str(tmp_path / "x.sif")}

    with pytest.raises(container.NoContainer, match="no apptainer or singularity on this node"):
        container.given({**named, "PATH": "/nowhere"}, RequestedResources())
    with pytest.raises(container.NoContainer, match=r"x\.sif is not there"):
        container.given({**named, "PATH": str(tmp_path)}, RequestedResources())
    (tmp_path / "x.sif").touch()
    box = container.given({**named, "PATH": str(tmp_path)}, RequestedResources())
    assert box
    assert box.runtime == "singularity"
    assert container.given({"PATH": str(tmp_path)}, RequestedResources()) is None


def test_an_image_without_python_finds_python3_under_that_name(tmp_path):
    run = RunFolder(str(tmp_path))

    variables = container.environment({"PATH": "/bin", "APPTAINER_X": "1"}, BOX, run, INSIDE)

    assert variables["APPTAINERENV_APPEND_PATH"] == f"{tmp_path}/bin"
    assert 'exec python3 "$@"' in (tmp_path / "bin" / "python").read_text()


def test_what_is_started_beside_a_program_has_its_settings_and_no_secret_among_its_words(tmp_path):
    given = {"PATH": "/bin", "APPTAINERENV_WANDB_API_KEY": "s3cret", "APPTAINER_X": "1"}
    told = container.environment(given, BOX, RunFolder(str(tmp_path)), INSIDE)[container.BESIDE]
    inside = {"PATH": "/image/bin", "APPTAINER_BIND": "/x", container.BESIDE: told}

    words, variables = container.beside(inside, ["nvidia-smi"])

    assert words[1:] == [*INSIDE[1:], "nvidia-smi"]
    assert variables.items() >= given.items()
    assert "APPTAINER_BIND" not in variables
    assert not [word for word in words if "s3cret" in word]


def test_without_a_container_it_is_started_as_it_is():
    assert container.beside({"A": "1"}, ["ls"]) == (["ls"], {"A": "1"})
