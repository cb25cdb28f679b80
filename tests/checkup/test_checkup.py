"""Every planted fault is found, and nothing is found where there is none."""

import subprocess
from dataclasses import replace

import pytest
from clean import CLEAN
from faults import FAULTS
from small_projects import REQUIREMENTS, WITHOUT_CUDA, Small

from rabaska.checkup.check_imports import missing
from rabaska.checkup.check_site import SiteAnswers, questions
from rabaska.checkup.check_site import checks as checks_of_answers
from rabaska.checkup.subject import read_subject
from rabaska.domain.jobs import TrialAnswer
from rabaska.journeys.doctor import diagnose, repair
from rabaska.records.home import Home
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load
from rabaska.sites.questions import SiteAnswer
from rabaska.steps.findings import examine


def subject(small, folder):
    return read_subject(load(small.write(folder), cluster=small.on), load_cluster(small.on))


def found(small, folder):
    return examine(subject(small, folder))


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, tmp_path):
    wanted, small = FAULTS[name]

    told = found(small, tmp_path)

    assert wanted in [each.id for each in told], told


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_told_without_others(name, tmp_path):
    wanted, small = FAULTS[name]
    # A cluster that is gone tells that too, whatever else is wrong.
    told = {each.id for each in found(small, tmp_path)} - {"cluster.gone"}

    assert told <= {wanted}


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_project_is_left_in_peace(name, tmp_path):
    assert found(CLEAN[name], tmp_path) == ()


def test_there_are_enough_of_both():
    assert len(FAULTS) >= 30
    assert len(CLEAN) >= 10


@pytest.mark.parametrize("name", FAULTS)
def test_a_finding_says_what_where_why_and_what_to_do(name, tmp_path):
    for each in found(FAULTS[name][1], tmp_path):
        assert all((each.what, each.where, each.why, each.fix)), each
        assert not each.what.endswith("."), each.what


def test_a_place_in_the_code_is_a_file_and_a_line(tmp_path):
    (told,) = found(Small(top="\nROOT = '/home/ana/data'"), tmp_path)

    script = (tmp_path / "train.py").read_text().splitlines()
    number = next(n for n, line in enumerate(script, 1) if "/home/ana" in line)
    assert told.where == f"train.py, line {number}"


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("python trian.py", "did you mean `train.py`?"),
        ("python train.py.py", "did you mean `train.py`?"),
        ("python src/train.py", "did you mean `train.py`?"),
        ("python fit/eval.py", "did you mean `tools/eval.py`?"),
        ("python -m tools.evla", "did you mean `tools.eval`?"),
        ("python quite_another.py", "write its path from the folder of rabaska.toml"),
    ],
)
def test_the_nearest_script_is_named(command, advice, tmp_path):
    small = Small(command=command, files={"tools/__init__.py": "", "tools/eval.py": "print(1)"})

    told = [each for each in found(small, tmp_path) if each.id == "code.script"]

    assert [each.fix for each in told] == [advice]


def test_a_script_that_gitignore_leaves_out_is_told(tmp_path):
    project = Small(files={".gitignore": "train.py\n"}).write(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)

    told = examine(read_subject(load(project, cluster="narval"), load_cluster("narval")))

    assert [each.id for each in told] == ["code.script"]
    assert "`!train.py`" in told[0].fix


@pytest.mark.parametrize("option", ["--init weights/start.pt", "--init=./weights/start.pt"])
def test_a_file_that_the_command_names_and_gitignore_leaves_out_is_told(option, tmp_path):
    command = f"python train.py --data {{data}} --output {{output}} {option}"
    ignored = {".gitignore": "*.pt\n", "weights/start.pt": "x"}
    project = Small(command=command, files=ignored).write(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)

    told = examine(read_subject(load(project, cluster="narval"), load_cluster("narval")))

    (left_out,) = [each for each in told if each.id == "code.left-out"]
    assert left_out.likely
    assert "`!weights/start.pt`" in left_out.fix


def test_files_that_are_sent_or_written_by_the_program_are_not_told(tmp_path):
    command = "python train.py --data {data} --config a.yaml --log kept/train.log --name none.pt"
    files = {".gitignore": "*.log\n", "a.yaml": "x", "kept/train.log": "x"}
    small = Small(command=command, files=files, more='[output]\nkeep = ["kept"]')
    project = small.write(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)

    told = examine(read_subject(load(project, cluster="narval"), load_cluster("narval")))

    assert [each.id for each in told if each.id == "code.left-out"] == []


ADVICE = 'kind = "virtualenv"\nrequirements = "requirements.txt"'


@pytest.mark.parametrize("environment", ["", 'requirements = "requirements.txt"'])
def test_what_is_advised_for_a_list_of_packages_works(environment, tmp_path):
    small = Small(environment=environment)
    table = f"{small.cluster}\n[cluster.narval.environment]\n"

    (told,) = found(replace(small, cluster=f'{table}kind = "current"'), tmp_path)
    advised = replace(small, cluster=f"{table}{ADVICE}")

    assert told.id == "environment.unused"
    assert "`current`" in told.why or '"current"' in told.why
    assert all(line in told.fix for line in ADVICE.splitlines())
    assert "[cluster.narval.environment]" in told.fix
    assert found(advised, tmp_path) == ()


@pytest.mark.parametrize("environment", ["", 'kind = "current"'])
def test_on_a_cluster_the_list_of_packages_is_installed_unless_it_says_otherwise(
    environment, tmp_path
):
    small = Small(environment=environment)

    assert found(small, tmp_path) == ()
    assert subject(small, tmp_path).project.environment.kind == "virtualenv"


def test_a_module_that_is_listed_already_is_not_to_be_listed_again(tmp_path):
    small = Small(environment='kind = "current"', requirements=REQUIREMENTS)

    told = {
        each.what.split()[0]: each.fix
        for each in missing(subject(small, tmp_path), "missing modules: torch cv2")
    }

    assert 'kind = "virtualenv"' in told["torch"]
    assert "in that file" not in told["torch"]
    assert "with `opencv-python` in that file" in told["cv2"]


def test_what_is_safe_is_mended_and_then_found_no_more(tmp_path):
    small = Small(
        on="here", cluster="", resources="gpus = 0", end="plt.show()", requirements=WITHOUT_CUDA,
        files={"job.sh": b"#!/bin/bash\r\nexit\r\n"},
    )  # fmt: skip
    home = Home(tmp_path / "home")
    project = load(small.write(tmp_path / "p"), cluster="here")

    done = repair(project, diagnose(project, "here", home).found)

    assert len(done) == 2
    assert (tmp_path / "p" / "job.sh").read_bytes() == b"#!/bin/bash\nexit\n"
    again = load(tmp_path / "p", cluster="here")
    assert again.environment.variables["MPLBACKEND"] == "Agg"
    assert again.command == project.command
    assert diagnose(again, "here", home).found == ()


def test_a_script_that_cannot_be_read_stops_nothing(tmp_path):
    assert found(Small(train="def broken(:\n"), tmp_path) == ()


ALLIANCE = {
    "store": "/scratch/ana\nwritable",
    "bytes": "10.0.0.1@tcp:/scratch 1000000 900000 100 99% /scratch",
    "files": "10.0.0.1@tcp:/scratch 1000000 999990 10 99% /scratch",
    "group": "ana\nana",
    "purge": "/scratch/ana/rabaska/packs/images-1234/shard-00000.tar",
    "accounts": "def-someone_cpu\ndef-someone_gpu",
}
IN_PEACE = {
    **ALLIANCE,
    "bytes": "10.0.0.1@tcp:/scratch 1000000 900000 9000000 1% /scratch",
    "files": "10.0.0.1@tcp:/scratch 1000000 10 999990 1% /scratch",
    "purge": "",
    "accounts": "def-prof_gpu",
    "queue": "up",
    "logs": "inside",
    "compiled": '{"why": ""}',
    "program": "/usr/bin/python",
    "limits": "/scratch 1000 90000000 90000000 - 10 500000 500000 -",
}


def told_by(answers, project, prospect=TrialAnswer()):  # noqa: B008 - it holds nothing
    said = SiteAnswers({name: SiteAnswer(0, text) for name, text in answers.items()}, prospect)
    return {each.id: each for each in checks_of_answers(project, said)}


def test_what_a_cluster_says_is_held_against_the_project(tmp_path):
    project = subject(Small(files={"images/large.bin": b"x" * 200_000}), tmp_path)

    told = told_by(ALLIANCE, project)

    assert set(told) == {"cluster.account", "cluster.room", "cluster.files", "cluster.purge"}
    assert "def-someone" in told["cluster.account"].fix
    assert told["cluster.files"].serious


def test_a_cluster_that_says_nothing_strange_is_left_in_peace(tmp_path):
    assert told_by(IN_PEACE, subject(Small(), tmp_path)) == {}


@pytest.mark.parametrize(
    ("question", "answer", "finding"),
    [
        ("queue", "down", "cluster.down"),
        ("logs", "outside", "cluster.logs"),
        ("limits", "/scratch 999* 900 999 6 10 500000 500000 0", "cluster.quota-bytes"),
        (
            "limits",
            "/scratch 1000 90000000 90000000 - 499999* 500000 500000 6",
            "cluster.quota-files",
        ),
        ("store", "/scratch/ana", "cluster.store"),
        ("compiled", '{"why": "no such library"}', "cluster.python-only"),
    ],
)
def test_each_answer_that_forebodes_ill_is_a_finding(question, answer, finding, tmp_path):
    told = told_by({**IN_PEACE, question: answer}, subject(Small(), tmp_path))

    assert set(told) == {finding}


def test_a_program_that_is_not_there_under_its_name_is_told_with_the_remedy(tmp_path):
    small = Small(on="sdumont", cluster='environment = {kind = "current"}', environment="")
    project = subject(small, tmp_path)

    told = told_by({**IN_PEACE, "program": "no such program"}, project)

    assert project.project.environment.kind == "current"
    assert "has no `python`" in told["environment.program"].what
    assert "python3" in told["environment.program"].fix


@pytest.mark.parametrize(
    ("path", "what", "serious"),
    [
        ({"python3": "Python 3.11.2"}, "has no `python`, so the job runs `python3`", False),
        ({"python": "Python 2.7.18", "python3": "Python 3.6.8"}, "`python` is Python 2.7.18", True),
        ({"python": "Python 3.11.2"}, "", False),
        ({}, "has no `python`", True),
    ],
)
def test_the_python_that_a_command_would_get_is_told(tmp_path, path, what, serious):
    """The question itself is asked, of a PATH that has these."""
    project = subject(
        Small(on="sdumont", cluster='environment = {kind = "current"}', environment=""), tmp_path
    )
    (tmp_path / "bin").mkdir()
    for name, version in path.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho {version} >&2\n")
        (tmp_path / "bin" / name).chmod(0o755)
    asking = ["/bin/bash", "-c", f"PATH={tmp_path}/bin; {questions(project)['program']}"]
    said = subprocess.run(asking, capture_output=True, text=True, check=False).stdout

    told = told_by({**IN_PEACE, "program": said}, project)

    assert list(told) == (["environment.program"] if what else [])
    assert all(what in each.what and each.serious == serious for each in told.values())


def test_a_refusal_is_explained_and_quoted(tmp_path):
    refusal = TrialAnswer(refusal="Requested time limit is invalid (missing or exceeds some limit)")

    told = told_by(IN_PEACE, subject(Small(), tmp_path), refusal)

    assert "walltime" in told["cluster.refused"].what
    assert "time limit is invalid" in told["cluster.refused"].why


@pytest.mark.parametrize("question", ["store", "bytes", "files", "group", "limits", "queue"])
@pytest.mark.parametrize("said", ["", "- - - -", "noise", "x: not found"])
def test_a_strange_answer_is_no_finding(question, said, tmp_path):
    told = told_by({question: said}, subject(Small(), tmp_path))

    assert told == {}


def test_every_question_is_a_script_that_bash_understands(tmp_path):
    asked = questions(subject(Small(), tmp_path))

    codes = [subprocess.call(["bash", "-n", "-c", script]) for script in asked.values()]

    assert codes == [0] * len(asked) != []


WHEELS = """torch-2.4.0-cp312-cp312-linux_x86_64.whl
torch-2.6.0+computecanada-cp312-cp312-linux_x86_64.whl
torchvision-0.20.1+computecanada-cp312-cp312-linux_x86_64.whl
"""


def test_packages_that_the_wheelhouse_lacks_are_told_with_what_it_has(tmp_path):
    small = Small(requirements="torch==2.5.1\ntorchvision==0.20.1\nmy-own.package\n")
    project = subject(small, tmp_path)

    said = SiteAnswers({"wheels": SiteAnswer(0, WHEELS)}, TrialAnswer())
    told = [each for each in checks_of_answers(project, said) if each.id.endswith("wheelhouse")]

    assert [each.what.rpartition("has no ")[2] for each in told] == [
        "torch 2.5.1",
        "my-own-package",
    ]
    assert told[0].fix == "it has 2.4.0, 2.6.0+computecanada"
    assert not any(each.serious for each in told)


def test_the_wheelhouse_is_asked_in_words_that_find_its_wheels(tmp_path):
    house = tmp_path / "wheels"
    house.mkdir()
    for name in ("my_own.package-1.0-py3-none-any.whl", "torch-2.5.1-cp312-x.whl", "other-1-x.whl"):
        (house / name).touch()
    project = subject(Small(requirements="torch==2.5.1\nmy-own.package\n"), tmp_path / "p")
    project = replace(project, cluster=replace(project.cluster, wheelhouse=(str(house),)))

    listed = subprocess.run(
        ["bash", "-c", questions(project)["wheels"]], capture_output=True, text=True, check=True
    )

    assert listed.stdout.split() == [
        "my_own.package-1.0-py3-none-any.whl",
        "torch-2.5.1-cp312-x.whl",
    ]
    said = SiteAnswers({"wheels": SiteAnswer(0, listed.stdout)}, TrialAnswer())
    assert list(checks_of_answers(project, said)) == []


def test_the_files_of_an_environment_there_are_counted(tmp_path):
    small = Small(environment='kind = "activate"\npath = "$HOME/miniconda3/envs/cats"')
    project = subject(small, tmp_path)

    assert "$HOME/miniconda3/envs/cats" in questions(project)["environment"]
    told = told_by({**IN_PEACE, "environment": "143210"}, project)
    assert "143,210 files" in told["environment.files"].what


def test_a_dataset_may_be_one_archive_or_several_folders(tmp_path):
    small = Small(files={"pictures.tar": b"x" * 2000, "labels/a.txt": b"cat"})
    folder = small.write(tmp_path)
    settings = (folder / "rabaska.toml").read_text()
    (folder / "rabaska.toml").write_text(
        settings.replace('path = "images"', 'path = "pictures.tar"\nbeside = ["labels"]')
    )

    read = read_subject(load(folder, cluster="narval"), load_cluster("narval"))

    assert (read.contents["images"].files, read.contents["images"].size) == (2, 2003)
    assert [each for each in examine(read) if each.id != "data.loose"] == []


@pytest.mark.parametrize("question", ["accounts", "queue", "store", "files", "environment"])
def test_the_complaint_of_a_command_is_no_answer(question, tmp_path):
    said = SiteAnswers(
        {question: SiteAnswer(127, "bash: line 1: no-such-command: not found")}, TrialAnswer()
    )

    assert list(checks_of_answers(subject(Small(), tmp_path), said)) == []


GUARDED = {
    "by an option": "if args.show: cv2.imshow('x', 1)",
    "by a key": "if config['display']: cv2.imshow('x', 1)",
    "by a constant": "if SHOW_IMAGES: cv2.imshow('x', 1)",
    "while debugging": "if __debug__: cv2.imshow('x', 1)",
    "by an and": "args.show and cv2.imshow('x', 1)",
    "where there is a screen": "if os.environ.get('DISPLAY'): cv2.imshow('x', 1)",
    "in a function that is called by choice": (
        "def look(): cv2.imshow('x', 1)\n    if args.show: look()"
    ),
    "in a function that leaves first": (
        "def look():\n        if not args.show: return\n        cv2.imshow('x', 1)\n    look()"
    ),
    "a path that is only compared": "print(os.getcwd() == '/home/ana/work')",
    "a path that is looked for": "print(args.data.startswith('/content/'))",
    "one of several paths": "print(args.data in ('/home/ana/a', '/home/ana/b'))",
    "a path used where it is": "if os.path.exists('/content/drive'): open('/content/drive/x')",
}


@pytest.mark.parametrize("name", GUARDED)
def test_what_is_done_by_choice_or_only_compared_is_no_fault(name, tmp_path):
    assert [each.id for each in found(Small(end=GUARDED[name], top="import os"), tmp_path)] == []


def test_a_function_that_is_called_without_a_choice_shows_its_window(tmp_path):
    called = Small(end="def look(): cv2.imshow('x', 1)\n    look()")

    assert [each.id for each in found(called, tmp_path)] == ["code.window"]


def test_data_above_the_project_that_is_not_carried_is_told(tmp_path):
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "a.bin").write_bytes(b"1")
    (tmp_path / "project").mkdir()

    told = found(Small(end="print(os.listdir('../above'))", top="import os"), tmp_path / "project")

    assert [(each.id, each.what) for each in told] == [
        ("data.outside", "the program reads ../above, which is not sent")
    ]


NOT_RESUMING = "for epoch in range(3):\n    print(epoch)\n"


@pytest.mark.parametrize(
    ("command", "resumes"),
    [
        ("sh -c 'ln -sfn \\\"$RABASKA_DATA_IMAGES\\\" images && exec python train.py'", False),
        ("sh -c 'exec python train.py $RABASKA_OUTPUT'", False),
        ("sh -c 'exec python train.py $RABASKA_CHECKPOINT'", True),
        ("bash run.sh", True),
        ("python train.py", False),
    ],
)
def test_only_what_gives_the_checkpoint_is_said_to_resume(command, resumes, tmp_path):
    shell = {"run.sh": "python train.py --resume $RABASKA_CHECKPOINT\n"}
    folder = Small(command=command, train=NOT_RESUMING, files=shell).write(tmp_path)

    assert read_subject(load(folder), load_cluster("narval")).resumption.resumes is resumes


def test_a_long_word_in_the_command_is_no_crash(tmp_path):
    folder = Small(command=f"python train.py --note {'x' * 5000}").write(tmp_path)

    examine(read_subject(load(folder), load_cluster("narval")))
