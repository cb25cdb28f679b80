"""Programs in the styles of public repositories: a chain grows only on one that goes on.

Each of the programs in `styles` ends its job after six of fourteen epochs (`job.spend`).
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STYLES = Path(__file__).parent / "styles"
STARTS_OVER = 17  # the exit code of `wait`
UNFINISHED = 10  # the same, of a run that is interrupted


@dataclass(frozen=True)
class Over:
    """A program that starts over in each job, whatever it is given."""

    says: str  # `init` of it
    command: str = ""  # what a user tries who wants to have a chain all the same
    reason: str = "started over at"


OVER = {
    "save_only": Over("does not resume from a checkpoint"),
    "save_and_test": Over("does not resume from a checkpoint"),
    "two_networks": Over(
        "only the weights",
        "python train.py --outf {output} --netG {checkpoint}",
        "was given",
    ),
    "weights_only": Over(
        "only the weights",
        "python train.py --output-dir {output} --resume {checkpoint}",
        "was given",
    ),
    "counter_restarted": Over(
        "only the weights", "python train.py --out {output} --resume {checkpoint}", "was given"
    ),
    "silent_table": Over("does not resume from a checkpoint"),
    "silent_numbers": Over("does not resume from a checkpoint"),
}

GOES_ON = (
    "init_from", "imagenet", "lightning_style", "huggingface_style", "keras_style", "finds_its_own",
    "flag_without_path", "replay_buffer", "orbax_style", "partial_fit", "config_file",
    "no_trainer_style", "scripts_folder",
)  # fmt: skip


@pytest.fixture
def somebody(user):
    """`somebody("save_only")`: a user in the folder of that program."""

    def somebody(style):
        shutil.rmtree(user.project)
        shutil.copytree(STYLES / style, user.project)
        shutil.copytree(STYLES / "shared", user.project, dirs_exist_ok=True)
        return user

    return somebody


def test_every_style_is_tried():
    assert {path.name for path in STYLES.iterdir()} == {"shared", *OVER, *GOES_ON}


@pytest.mark.parametrize("style", OVER)
def test_a_program_that_starts_over_is_told_so_and_no_chain_grows_on_it(somebody, style):
    user, case = somebody(style), OVER[style]

    proposed = user.types("init", "--yes")
    if case.command:
        _set_command(user, case.command)
    user.types("run", "--wait", "--jobs", "3", "--at-most", "30", code=STARTS_OVER)

    told = user.status()
    assert case.says in proposed.errors
    assert "jobs = 1 " in (user.project / "rabaska.toml").read_text()
    assert told["state"] == "failed"
    assert told["reason"].startswith("it starts over: job 2 ")
    assert case.reason in told["reason"]
    assert told["hint"]
    assert len(told["jobs"]) == 2
    assert not told["extended"]
    assert told["jobs"][1]["resumed_from"] == ""
    shown = user.types("status").output
    assert "started over" in shown
    assert "it starts over" in user.types("logs").output.strip().splitlines()[-1]
    explained = user.types("explain", told["name"]).output
    assert "starts over" in explained
    assert "fix:" in explained


@pytest.mark.parametrize("style", ["save_only", "two_networks"])
def test_one_job_that_is_too_short_for_it_is_not_said_to_go_on(somebody, style):
    user = somebody(style)
    user.types("init", "--yes")

    said = user.types("run", "--wait", code=UNFINISHED)

    told = user.status()
    assert told["state"] == "interrupted"
    assert "all of it must fit into one job of " in said.errors
    cancelled = user.types("cancel").errors
    resumed = user.types("resume").errors
    log = user.types("logs", "--job", "1").output.strip().splitlines()[-1]
    for text in (told["hint"], said.output, log, cancelled, resumed):
        assert "would start over: its program " in text
        assert "can go on" not in text
        assert "continues it" not in text
    for text in (told["hint"], said.output, log):
        assert "goes on" not in text
        assert "a longer `--walltime`, enough for all of it in one job" in text


@pytest.mark.parametrize("style", GOES_ON)
def test_a_program_that_goes_on_runs_as_a_chain_without_an_alarm(somebody, style):
    user = somebody(style)

    user.types("init", "--yes")
    doctor = user.types("doctor").output
    submitted = user.types("run", "--wait").errors

    told = user.status()
    assert told["state"] == "finished", told
    assert "must fit into one job" not in submitted
    assert len(told["jobs"]) == 3
    assert all(job["started_over"] == "" for job in told["jobs"])
    assert all(job["resumed_from"] for job in told["jobs"][1:])
    assert "code." not in doctor


def test_a_way_to_resume_that_is_not_used_is_found_out(somebody):
    user = somebody("init_from")
    user.types("init", "--yes")
    settings = user.project / "rabaska.toml"
    lines = settings.read_text().splitlines()
    settings.write_text("\n".join(line for line in lines if not line.startswith("resume")))

    warned = user.types("run", "--wait", code=STARTS_OVER).errors

    assert "never resumes" in warned
    assert "--init_from=resume" in warned
    assert len(user.status()["jobs"]) == 2
    refused = user.types("run", code=STARTS_OVER).errors
    assert "each job of this run would begin the training again" in refused
    assert "--jobs 1" in refused
    assert "starts over, and its next job will too: job 2 " in user.types("resume").errors
    assert "continues it" not in user.types("cancel").errors


def _set_command(user, command):
    settings = user.project / "rabaska.toml"
    lines = settings.read_text().splitlines()
    kept = [f'command = "{command}"' if line.startswith("command") else line for line in lines]
    settings.write_text("\n".join(kept))


@pytest.mark.parametrize("patterns", ['"epoch*.pt"', '"*.ckpt", "model_*.pth"'])
def test_a_checkpoint_that_no_pattern_fits_is_found_and_named(somebody, patterns):
    user = somebody("finds_its_own")
    user.types("init", "--yes")
    settings = user.project / "rabaska.toml"
    settings.write_text(f"{settings.read_text()}\n[checkpoints]\npatterns = [{patterns}]\n")

    user.types("run", "--wait")

    told = user.status()
    assert told["state"] == "finished"
    assert told["checkpoint"]["path"] == "output/last.pt"
    assert [job["resumed_from"] for job in told["jobs"][1:]] == ["output/last.pt"] * 2
    log = user.types("logs", "--job", "1").output
    assert "output/last.pt is a checkpoint" in log
    assert "added `last.pt`" in log
