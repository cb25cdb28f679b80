"""`run`, `resume`, `rerun` and `shell` request with the same options, after the same checks."""

import json

import pytest
from tests.journeys.test_going_on_differently import SETTINGS, TRAIN

import rabaska
from rabaska.cli.again import rerun, resume
from rabaska.cli.projects import run
from rabaska.cli.runs import shell
from rabaska.errors import WouldFail

REQUESTS = {"walltime": "3h", "memory": "6GB", "cores": 2, "queue": "gpubase", "account": "def-x"}


@pytest.fixture
def someone(laptop):
    (laptop.project / "train.py").write_text(TRAIN)
    (laptop.project / "rabaska.toml").write_text(SETTINGS)
    return laptop


def runs(someone):
    return json.loads(someone.types("status", "--all", "--json"))


@pytest.mark.parametrize("command", [run, resume, rerun, shell], ids=lambda each: each.name)
def test_each_command_that_submits_jobs_takes_the_same_requests(command):
    names = {option.name for option in command.params}

    assert {*REQUESTS, "gpus"} <= names


def test_a_run_requests_what_its_options_say(someone):
    words = [word for key, value in REQUESTS.items() for word in (f"--{key}", str(value))]

    planned = json.loads(
        someone.types("run", "--on", "narval", *words, "--gpus", "1", "--dry-run", "--json")
    )

    requested = planned["plan"]["request"]
    assert (requested["queue"], requested["account"]) == ("gpubase", "def-x")
    resources = requested["resources"]
    assert (resources["walltime"], resources["memory"]) == (3 * 3600, 6 * 10**9)
    assert (resources["cores"], resources["gpus"]) == (2, 1)


def test_from_python_the_requests_have_the_same_names(someone):
    someone.goes_there()

    planned = rabaska.preview(on="narval", **REQUESTS)

    assert planned.spec.queue == "gpubase"
    assert planned.spec.resources.memory == 6 * 10**9


def test_a_rerun_with_new_code_that_would_fail_is_refused(someone):
    first = someone.types("run", "-q", "--no-doctor", draws=["0001"])
    someone.types("wait", first, "-q")
    (someone.project / "train.py").write_text("import nobody_wrote_this\n" + TRAIN)

    with pytest.raises(WouldFail, match="nobody_wrote_this") as refused:
        someone.types("rerun", first, "--with-code", "new")

    assert refused.value.exit_code == 19
    assert [each["name"] for each in runs(someone)] == [first]
    assert "tiny-0002" in someone.types(
        "rerun", first, "--with-code", "new", "--anyway", draws=["0002"]
    )


def test_the_code_that_was_submitted_is_checked_not_that_of_today(someone):
    first = someone.types("run", "-q", "--no-doctor", draws=["0001"])
    someone.types("wait", first, "-q")
    (someone.project / "train.py").write_text("import nobody_wrote_this\n" + TRAIN)

    said = someone.types("rerun", first, draws=["0002"], both=True)

    assert "tiny-0002: submitted" in said


def test_a_rerun_of_code_that_would_fail_is_refused_whatever_it_is_now(someone):
    (someone.project / "train.py").write_text("import nobody_wrote_this\n" + TRAIN)
    first = someone.types("run", "-q", "--no-doctor", draws=["0001"])
    someone.types("wait", first, "-q")
    (someone.project / "train.py").write_text(TRAIN)

    with pytest.raises(WouldFail, match="nobody_wrote_this"):
        someone.types("rerun", first)
