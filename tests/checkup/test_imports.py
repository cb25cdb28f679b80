"""Imports compared with lists of packages: no false alarm, and nothing missed."""

import pytest
from import_sets import SETS
from small_projects import Small

from rabaska.checkup.check_imports import not_listed
from rabaska.checkup.pinned_packages import has_more, read
from rabaska.checkup.subject import read_subject
from rabaska.knowledge.packages import brought, packages, providers
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load

MAIN = "\nif __name__ == '__main__':\n    print('training')\n"


def told(requirements, program, files, folder):
    small = Small(
        on="mila", cluster="", train=program + MAIN, requirements=requirements,
        command="python train.py", files=dict(files),
    )  # fmt: skip
    subject = read_subject(load(small.write(folder), cluster="mila"), load_cluster("mila"))
    return list(not_listed(subject, subject.project.environment.requirements))


def test_there_are_thirty_sets():
    assert len(SETS) >= 30


@pytest.mark.parametrize("name", SETS)
def test_a_list_that_has_everything_is_not_accused(name, tmp_path):
    case = SETS[name]

    assert told(case.requirements, case.program, case.files, tmp_path) == []


OMISSIONS = [(name, line) for name, case in SETS.items() for line in case.needed]


@pytest.mark.parametrize(("name", "line"), OMISSIONS)
def test_a_line_that_is_left_out_is_found(name, line, tmp_path):
    case = SETS[name]
    package = read(line)[0].name
    kept = [each for each in case.requirements.splitlines() if package not in plain(each)]
    # A list that is empty is one that nobody wrote.
    kept = kept or ["six"]

    findings = told("\n".join(kept), case.program, case.files, tmp_path)

    assert package in [finding.what.split()[0] for finding in findings]
    (finding,) = [each for each in findings if each.what.split()[0] == package]
    assert finding.fix == f"add `{package}` to requirements.txt"


def plain(line):
    return [requirement.name for requirement in read(line)]


def test_an_omission_is_certain_where_all_other_packages_are_known(tmp_path):
    program = "import torch, tqdm\n"

    certain = told("torch\n", program, {}, tmp_path / "a")
    old = told("torch==1.7.1\n", program, {}, tmp_path / "b")
    unknown = told("torch\nour-lab-tools\n", program, {}, tmp_path / "c")

    assert [finding.serious for finding in certain] == [True]
    assert [(finding.serious, finding.likely) for finding in old] == [(False, True)]
    assert unknown == []  # what pip resolves is compared when a run is made


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("cv2", "opencv-python"), ("PIL", "pillow"), ("sklearn", "scikit-learn"),
        ("yaml", "pyyaml"), ("skimage", "scikit-image"), ("bs4", "beautifulsoup4"),
        ("hydra", "hydra-core"), ("google.cloud.storage", "google-cloud-storage"),
        ("pytorch_lightning", "pytorch-lightning"), ("dateutil", "python-dateutil"),
        ("attr", "attrs"), ("Crypto", "pycryptodome"), ("serial", "pyserial"),
        ("dotenv", "python-dotenv"), ("git", "gitpython"), ("fitz", "pymupdf"),
        ("pynvml", "nvidia-ml-py"), ("absl", "absl-py"), ("umap", "umap-learn"),
        ("MySQLdb", "mysqlclient"), ("jwt", "pyjwt"), ("faiss", "faiss-cpu"),
    ],
)  # fmt: skip
def test_the_usual_package_of_a_module_is_named_first(module, package):
    assert providers(module)[0] == package


def test_packages_bring_others_along():
    assert {"numpy", "pillow", "torch", "sympy"} <= brought(["torchvision"])
    assert "tqdm" not in brought(["torch"])


def test_the_table_is_of_some_thousands_of_packages():
    assert len(packages()) > 3000
    assert sum(bool(package.modules) for package in packages().values()) > 2500


def test_what_a_line_names_is_read():
    text = "torch==2.5.1+cu121\nscikit_learn>=1\na[b]==1.0\nx @ https://e.org/x.whl\n./own\n-e .\n"

    found = read(text)

    assert [each.name for each in found] == ["torch", "scikit-learn", "a", "x"]
    assert (found[0].version, found[0].cuda, found[0].loose) == ((2, 5, 1), "cu121", False)
    assert found[1].loose
    assert found[2].extras
    assert found[3].elsewhere
    assert has_more(text)
    assert not has_more("torch\n")
