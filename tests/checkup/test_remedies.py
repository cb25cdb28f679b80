"""No hint leads to the same error again: each remedy that is a line is applied, and it is gone."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from faults import FAULTS
from remedies import apply
from small_projects import COMMAND, Small

from rabaska.checkup import check_imports
from rabaska.checkup.check_imports import missing
from rabaska.checkup.check_software import missing_program
from rabaska.checkup.subject import read_subject
from rabaska.knowledge.gpu_facts import gpus
from rabaska.scouting.dataset_contents import Contents
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load
from rabaska.steps.findings import examine

# What a person must decide or write: no line does it.
BY_HAND = {
    "code.left-out", "code.window", "code.backend", "code.asks", "code.path", "code.saves-often",
    "code.writes-often", "code.workers", "code.bf16", "code.never-saves", "code.never-resumes",
    "code.line-ends", "code.salloc", "code.download", "code.script", "data.empty", "data.archive",
    "data.hollow", "data.twice", "environment.conda", "environment.local", "environment.python",
    "cluster.gone", "cluster.account", "cluster.purge-soon",
}  # fmt: skip


def subject(folder, on):
    return read_subject(load(folder, cluster=on), load_cluster(on))


@pytest.mark.parametrize("name", FAULTS)
def test_a_remedy_that_is_a_line_removes_the_finding(name, tmp_path):
    wanted, small = FAULTS[name]
    folder = small.write(tmp_path)
    told = [each for each in examine(subject(folder, small.on)) if each.id == wanted]

    applied = [apply(each.fix, folder) for each in told]

    assert told
    assert all(applied) or wanted in BY_HAND, told
    if all(applied):
        left = [each for each in examine(subject(folder, small.on)) if each.id == wanted]
        assert left == []


@pytest.mark.parametrize(
    ("walltime", "gpus", "wanted", "queue"),
    [("40d", 1, "cluster.time", "nvidia_long"), ("10m", 9, "cluster.gpus", "gdl")],
)
def test_where_no_queue_grants_it_the_remedy_names_the_one_that_grants_most(
    walltime, gpus, wanted, queue, tmp_path
):
    dev, asked = 'queue = "nvidia_dev"', f"gpus = {gpus}\ncores = 4"
    folder = Small(on="sdumont", cluster=dev, resources=asked, walltime=walltime).write(tmp_path)
    (told,) = [each for each in examine(subject(folder, "sdumont")) if each.id == wanted]

    assert apply(told.fix, folder)

    after = subject(folder, "sdumont")
    assert after.project.queue == queue
    assert not [each for each in examine(after) if each.serious and each.family == "cluster"]


MANY = Contents(files=3_000_000, size=10**9)
LARGE = Contents(files=10, size=10**15)


@pytest.mark.parametrize(("wanted", "contents"), [("data.many", MANY), ("data.node", LARGE)])
def test_data_that_a_node_cannot_take_is_read_in_shards(wanted, contents, tmp_path):
    folder = Small().write(tmp_path)

    def found():
        read = replace(subject(folder, "narval"), contents={"images": contents})
        return [each for each in examine(read) if each.id == wanted]

    (told,) = found()

    assert apply(told.fix, folder), told.fix
    assert found() == []


LEFT_OUT = Small(
    command=f"{COMMAND} --weights start.pt", more='[code]\nexclude = ["*.pt"]',
    files={"start.pt": "x"},
)  # fmt: skip


def test_a_file_that_is_left_out_is_sent_once_the_pattern_is_gone(tmp_path):
    folder = LEFT_OUT.write(tmp_path)
    (told,) = examine(subject(folder, "narval"))

    assert told.id == "code.left-out"
    assert "out of `exclude` under [code]" in told.fix
    replace(LEFT_OUT, more="").write(tmp_path)
    assert examine(subject(folder, "narval")) == ()


READS = """
import os
import numpy as np
tokens = np.memmap(os.path.join("data", "plays", "train.bin"), dtype=np.uint16)
np.save("made.bin", tokens)
"""


def test_data_that_is_ignored_is_a_dataset_once_it_is_named(tmp_path):
    ignored = {"data/plays/train.bin": "x", "data/plays/made.bin": "x", "old/other.bin": "x"}
    small = Small(top=READS, more='[code]\nexclude = ["*.bin"]', files=ignored)
    folder = small.write(tmp_path)

    told = [each for each in examine(subject(folder, "narval")) if each.id == "data.left-out"]

    assert [each.where for each in told] == ["data/plays"]
    assert "`rabaska init --force --data data/plays`" in told[0].fix
    replace(small, data='[data.plays]\npath = "data/plays"').write(tmp_path)
    assert "data.left-out" not in {each.id for each in examine(subject(folder, "narval"))}


# Found only by asking a cluster: elsewhere in these tests, and in tests/real.
ASKED = {
    "cluster.closed", "cluster.down", "cluster.files", "cluster.group", "cluster.leftover",
    "cluster.logs", "cluster.purge", "cluster.python-only", "cluster.quota", "cluster.refused",
    "cluster.room", "cluster.ssh", "cluster.store", "data.absent", "data.closed",
    "data.download", "data.quota",
    "environment.files", "environment.module", "environment.program", "environment.room",
    "environment.secrets", "environment.wheelhouse",
}  # fmt: skip
# No line does it; see test_checkup.py and test_doctor.py.
READ = {
    "code.unread-resume", "code.weights-only", "data.outside", "environment.processor",
    "code.left-out", "data.many", "data.node", "data.left-out",
}  # fmt: skip


def test_every_finding_has_a_fault_in_the_table_or_a_reason():
    room = Path(check_imports.__file__).parent
    sources = [*room.glob("*.py"), room.parent / "journeys" / "doctor.py"]
    ids = re.compile(r'Finding\(\s*"((?:code|data|environment|cluster)\.[a-z0-9-]+)"')
    known = {name for file in sources for name in ids.findall(file.read_text())}

    assert known - {wanted for wanted, _ in FAULTS.values()} - ASKED - READ == set()


def test_data_that_is_there_and_given_to_the_program_is_not_downloaded(tmp_path):
    command = "python train.py --output {output} --resume {checkpoint}"
    downloads = Small(end="datasets.MNIST(os.path.join(args.data, 'x'), download=True)")
    folder = replace(downloads, command=command).write(tmp_path)
    (told,) = (each for each in examine(subject(folder, "narval")) if each.id == "code.download")

    assert "name the folder under [data], and give it to the program as `{data}`" in told.fix
    downloads.write(tmp_path)  # with --data {data}
    assert examine(subject(folder, "narval")) == ()


def test_a_file_with_an_address_is_downloaded_by_a_line_and_not_by_the_program(tmp_path):
    fetch = "import urllib.request\nurllib.request.urlretrieve('https://x.org/y.zip', 'y')"
    folder = Small(top=fetch).write(tmp_path)
    (told,) = examine(subject(folder, "narval"))

    assert 'write `url = "https://x.org/y.zip"` under [data.NAME]' in told.fix
    Small(data='[data.y]\nurl = "https://x.org/y.zip"',
          command="python train.py --data {data.y} --output {output} --resume {checkpoint}"
          ).write(tmp_path)  # fmt: skip
    assert [each.id for each in examine(subject(folder, "narval"))] == []


def on_gpu(folder, gpu):
    read = subject(folder, "mila")
    resources = replace(read.project.resources, gpus=1, gpu_model=gpu)
    cluster = replace(read.cluster, partitions=(), wheelhouse=())
    return replace(read, project=replace(read.project, resources=resources), cluster=cluster)


GPUS = ["k40", "k80", "p100", "v100", "a100", "h100", "mi250"]
LISTS = ["torch", "torch==1.2.0", "torch==1.13.1", "torch==2.0.1", "torch==2.5.1", "torch<2.1",
         "torch==2.9.0", "torch==2.12.0", "torch==2.15.0", "torch>=2", "tensorflow==2.18.0",
         "tensorflow"]  # fmt: skip


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("line", LISTS)
def test_a_build_for_this_gpu_is_named_and_has_code_for_it(line, gpu, tmp_path):
    folder = Small(on="mila", cluster="", requirements=f"{line}\nsix\n").write(tmp_path)

    told = [each for each in examine(on_gpu(folder, gpu)) if each.id == "environment.build"]

    for finding in told:
        assert gpu.upper() in finding.what
        assert gpu.upper() in finding.fix
        assert not any(f" {other.upper()}" in finding.fix for other in gpus() if other not in gpu)
        assert apply(finding.fix, folder), finding.fix
    left = [each for each in examine(on_gpu(folder, gpu)) if each.id == "environment.build"]
    assert left == []


@pytest.mark.parametrize(
    ("line", "gpu", "serious"),
    [
        ("torch", "k80", False), ("torch", "p100", False), ("torch", "v100", False),
        ("torch", "a100", None), ("torch", "h100", None), ("torch", "mi250", False),
        ("torch<2.1", "k80", None), ("torch==2.15.0", "v100", True), ("torch==1.13.1", "k40", True),
        ("torch==2.12.0+cu126", "v100", None), ("torch==2.9.1+rocm6.4", "mi250", None),
        ("torch==1.2.0", "h100", True), ("torch==2.5.1+cpu", "v100", None),
    ],
)  # fmt: skip
def test_what_would_be_installed_is_compared_with_the_gpu(line, gpu, serious, tmp_path):
    folder = Small(on="mila", cluster="", requirements=f"{line}\nsix\n").write(tmp_path)

    told = [each for each in examine(on_gpu(folder, gpu)) if each.id == "environment.build"]

    assert [each.serious for each in told] == ([] if serious is None else [serious])


def test_the_remedy_for_a_module_that_the_cluster_lacks_makes_it_listed(tmp_path):
    own = 'account = "def-prof"\n[cluster.narval.environment]\nkind = "current"'
    folder = Small(cluster=own, environment="", top="import cv2").write(tmp_path)
    assert load(folder, cluster="narval").environment.kind == "current"
    (told,) = missing(subject(folder, "narval"), "missing modules: cv2")

    assert apply(told.fix, folder)
    assert "`opencv-python` in that file" in told.fix
    (folder / "requirements.txt").write_text("torch\ntorchvision\nopencv-python\n")
    after = subject(folder, "narval")

    assert after.project.environment.kind == "virtualenv"
    assert [each for each in examine(after) if each.family == "environment"] == []


def test_the_remedy_for_a_program_that_is_not_there_is_another_word(tmp_path):
    folder = Small(on="sdumont", cluster='environment = {kind = "current"}', environment="").write(
        tmp_path
    )
    (told,) = missing_program(subject(folder, "sdumont"), "no such program")

    assert apply(told.fix, folder)
    assert load(folder, cluster="sdumont").command[0] == "python3"


@pytest.mark.parametrize(("jobs", "several"), [(1, False), (3, True)])
def test_a_program_that_would_begin_again_is_not_told_to_take_more_jobs(jobs, several, tmp_path):
    folder = Small(walltime="10d", command="python train.py --data {data.images}", jobs=jobs).write(
        tmp_path
    )

    (told,) = (each for each in examine(subject(folder, Small.on)) if each.id == "cluster.time")

    assert ("`jobs = " in told.fix) is several
    assert ("begin again" in told.fix) is not several
