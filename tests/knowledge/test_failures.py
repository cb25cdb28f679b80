"""Known messages are explained, ordinary lines are not."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.knowledge import failures
from rabaska.knowledge.failures import explain, facts
from rabaska.schedulers import SCHEDULERS, named

HERE = Path(__file__).parent
MESSAGES = tomllib.loads((HERE / "messages.toml").read_text("utf-8"))
ORDINARY = (HERE / "ordinary.log").read_text("utf-8").splitlines()
TABLE = Path(failures.__file__).with_name("failures.toml").read_text("utf-8")
STAGES = "submit pending run env gpu distributed data ssh transfer tunnel chain"
KEYS = {"id", "stage", "match", "meaning", "fix", "schedulers", "ours", "vague"}


def ids(text, **wanted):
    return [failure.id for failure in explain(text, **wanted)]


def what_it_says(script):
    return subprocess.run(
        [sys.executable, script], capture_output=True, check=False
    ).stderr.decode()


def test_every_fact_has_a_message_and_every_message_a_fact():
    known = {fact.id for fact in facts()}

    assert known - MESSAGES.keys() == set(), "give each a real message in messages.toml"
    assert MESSAGES.keys() - known == set(), "failures.toml has no entry with these ids"


def test_no_id_is_used_twice():
    names = [fact.id for fact in facts()]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("entry", tomllib.loads(TABLE)["failure"], ids=lambda entry: entry["id"])
def test_no_word_of_an_entry_is_misspelled(entry):
    assert entry.keys() - KEYS == set(), "no such key"
    assert entry["stage"] in STAGES.split(), "no such stage: it would never be explained"
    assert set(entry.get("schedulers", ())) - SCHEDULERS.keys() == set(), "no such scheduler"


def test_the_comment_names_every_stage():
    assert STAGES in TABLE


@pytest.mark.parametrize("scheduler", [name for name in SCHEDULERS if name != "local"])
def test_a_scheduler_whose_commands_are_not_found_is_explained(scheduler):
    command = named(scheduler, program=(), queue="").site.programs[0]

    found = ids(f"bash: line 1: {command}: command not found")

    assert "no-scheduler" in found, f"add {command} to `match` of no-scheduler in failures.toml"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_known_message_is_explained(name):
    found = explain(MESSAGES[name])

    assert name in [failure.id for failure in found], f"`match` of {name} does not match it"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_known_message_is_found_in_the_middle_of_a_log(name):
    log = "\n".join([*ORDINARY, MESSAGES[name], *ORDINARY])

    # Of an empty log nothing is left once it stands among other lines.
    assert (name in ids(log)) == (name != "buffered")


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_is_not_taken_for_a_failure(line):
    assert explain(line) == (), "`match` is too wide: nothing is wrong in this line"


def test_meanings_and_fixes_are_whole_sentences():
    for fact in facts():
        assert fact.meaning.endswith("."), fact.id
        assert fact.fix.endswith("."), fact.id


def test_the_line_that_gave_it_away_is_quoted():
    log = "step 1\nModuleNotFoundError: No module named 'torch'\nexit 1\n"

    (failure,) = explain(log)

    assert failure.line == "ModuleNotFoundError: No module named 'torch'"


def test_the_last_failure_of_a_log_comes_first():
    log = f"{MESSAGES['too-many-workers']}\n{MESSAGES['cuda-oom']}"

    assert ids(log) == ["cuda-oom", "too-many-workers"]


def test_a_line_with_many_causes_comes_after_one_with_few():
    log = f"{MESSAGES['oom-host']}\n{MESSAGES['login-killed']}"

    assert ids(log) == ["oom-host", "login-killed"]


def test_what_is_said_in_a_jobs_log_is_looked_for_in_all_it_may_speak_of():
    log = f"{MESSAGES['cuda-oom']}\n{MESSAGES['ssh-hostkey']}"

    assert ids(log, stage="run") == ["cuda-oom"]
    assert ids(log, stage="connect") == ["ssh-hostkey"]


def test_another_schedulers_words_are_not_used():
    message = MESSAGES["torque-unknown-queue"]

    assert ids(message, scheduler="slurm") == []
    assert ids(message, scheduler="torque") == ["torque-unknown-queue"]


def test_the_traceback_of_a_real_program_is_explained(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("def main():\n    import torchvisoin\n\nmain()\n")

    log = what_it_says(script)

    assert ids(log, stage="run") == ["py-module-missing"]


def test_a_traceback_nobody_foresaw_is_quoted_by_its_last_line(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("raise ValueError('Expected input batch_size (64) to match (32)')\n")

    log = what_it_says(script)

    (failure,) = explain(log, stage="run")
    assert failure.id == "python-error"
    assert failure.line == "ValueError: Expected input batch_size (64) to match (32)"


def test_a_log_of_one_endless_line_is_read_at_both_ends():
    log = "x" * 10_000_000 + " CUDA out of memory"

    assert ids(log) == ["cuda-oom"]


@given(st.text())
def test_no_text_makes_it_fail(text):
    for failure in explain(text):
        assert failure.meaning
        assert failure.fix


def test_importing_it_does_not_read_the_facts():
    program = (
        "import sys; import rabaska.knowledge.failures as f; print(f.facts.cache_info().currsize)"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True
    ).stdout

    assert printed.strip() == b"0"


NO_INTERNET = (
    "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
    "socket.gaierror: [Errno -3] Temporary failure in name resolution",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='pytorch.org', port=443)",
    "urllib3.exceptions.NameResolutionError: Failed to resolve 'huggingface.co' ([Errno -2] Name "
    "or service not known)",
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't "
    "find them in the cached files.",
    "ConnectionError: Couldn't reach 'ylecun/mnist' on the Hub (LocalEntryNotFoundError)",
    "httpx.ConnectError: [Errno 101] Network is unreachable",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "RuntimeError: Error downloading train-images-idx3-ubyte.gz: <urlopen error timed out>",
    "curl: (6) Could not resolve host: data.vision.ee.ethz.ch",
    "socket.gaierror: [Errno -5] No address associated with hostname",
)


@pytest.mark.parametrize("message", NO_INTERNET)
def test_a_node_without_internet_is_told_from_a_fault_of_the_program(message):
    log = f"Traceback (most recent call last):\n  File 'train.py', line 3\n{message}"

    assert explain(log, stage="run")[0].id == "pip-network"
