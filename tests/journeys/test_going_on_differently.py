"""Resume with other requests, a new run like an earlier one, and runs that are deleted."""

import json
import sys

import pytest

import rabaska
from rabaska.errors import DatasetError, NoSuchRun, SettingsError, WrongUse

TRAIN = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--output")
parser.add_argument("--resume")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--stop", type=int, default=0)
args = parser.parse_args()
step = json.load(open(args.resume))["step"] if args.resume else 0
print("begins with", step)
while step < args.steps:
    step += 1
    print("step", step, flush=True)
    with open(os.path.join(args.output, "checkpoint-%03d.json" % step), "w") as stream:
        json.dump({"step": step}, stream)
    if step == args.stop:
        sys.exit(3)
"""
SETTINGS = f"""
name = "tiny"
command = "{sys.executable} train.py --output {{output}} --resume {{checkpoint}} --stop 2"
[resources]
walltime = "40s"
[chain]
jobs = 1
[checkpoints]
patterns = ["checkpoint-*.json"]
"""


@pytest.fixture
def someone(laptop):
    (laptop.project / "train.py").write_text(TRAIN)
    (laptop.project / "rabaska.toml").write_text(SETTINGS)
    return laptop


@pytest.fixture
def stopped(someone):
    """A run that failed after two steps."""
    run = someone.types("run", "-q", "--no-doctor", draws=["0001"])
    someone.types("wait", run, "-q")
    return run


def plan_of(someone, run):
    return json.loads((someone.user.home / "store/runs" / run / "run.json").read_text())


def printed(someone, run):
    return someone.types("logs", run)


def test_a_resumed_run_has_the_resources_that_it_is_given(someone, stopped):
    said = someone.types("resume", stopped, "--walltime", "50s", "--cores", "1", both=True)
    someone.types("wait", stopped, "-q")

    plan = plan_of(someone, stopped)
    assert "walltime: 40 s -> 50 s" in said
    assert "cores: none -> 1" in said
    assert plan["walltime"] == plan["about"]["resources"]["walltime"] == 50
    assert plan["about"]["resources"]["cores"] == 1
    assert "begins with 2" in printed(someone, stopped)
    assert someone.status(stopped)["state"] == "finished"


def test_what_resume_keeps_though_the_settings_changed_is_said_with_the_option(someone, stopped):
    (someone.project / "rabaska.toml").write_text(SETTINGS.replace("40s", "2h"))

    said = someone.types("resume", stopped, both=True)

    assert "walltime stays 40 s: rabaska.toml says 2 h" in said
    assert "`--walltime 2h` changes it" in said
    assert plan_of(someone, stopped)["walltime"] == 40


def test_nonsense_is_refused_before_anything_is_submitted(someone, stopped):
    for words in (["--memory", "lots"], ["--walltime", "soon"], ["--walltime", "0s"]):
        with pytest.raises(WrongUse):
            someone.types("resume", stopped, *words)
    assert plan_of(someone, stopped)["walltime"] == 40


def test_a_rerun_has_the_same_code_and_shows_other_arguments_first(someone, stopped):
    (someone.project / "train.py").write_text("raise SystemExit('changed')\n")

    said = someone.types("rerun", stopped, "--", "--stop", "0", draws=["0002"], both=True)
    someone.types("wait", "tiny-0002", "-q")

    assert "arguments: --stop 2 -> --stop 0" in said
    assert said.index("arguments:") < said.index("submitted")
    assert "code:" not in said
    assert "begins with 0" in printed(someone, "tiny-0002")
    told = someone.status("tiny-0002")
    assert told["state"] == "finished"
    assert told["about"]["like"] == f"{stopped} on here"


def test_a_rerun_with_new_code_names_the_files_that_changed(someone, stopped):
    (someone.project / "train.py").write_text(TRAIN.replace("begins with", "now at"))

    said = someone.types("rerun", stopped, "--with-code", "new", draws=["0002"], both=True)
    someone.types("wait", "tiny-0002", "-q")

    assert "train.py changed" in said
    assert "now at 0" in printed(someone, "tiny-0002")


def test_a_rerun_from_a_checkpoint_trains_on_with_the_results_so_far(someone, stopped):
    words = ["--from-checkpoint", "--walltime", "50s", "--", "--steps", "6", "--stop", "0"]

    someone.types("rerun", stopped, *words, draws=["0002"])
    someone.types("wait", "tiny-0002", "-q")
    someone.types("fetch", "tiny-0002")

    assert "begins with 2" in printed(someone, "tiny-0002")
    output = someone.project / "results/tiny-0002/output"
    assert sorted(file.name for file in output.iterdir())[0] == "checkpoint-001.json"
    assert len(list(output.iterdir())) == 6
    assert plan_of(someone, "tiny-0002")["walltime"] == 50
    assert someone.status("tiny-0002")["jobs"][0]["resumed_from"].endswith("checkpoint-002.json")


def test_a_dry_rerun_submits_nothing(someone, stopped):
    said = someone.types("rerun", "--dry-run", "--", "--steps", "9")

    assert "arguments: none -> --steps 9" in said
    assert json.loads(someone.types("status", "--all", "--json"))[-1]["name"] == stopped


def test_a_rerun_without_a_checkpoint_or_with_a_wrong_placeholder_is_refused(someone):
    (someone.project / "train.py").write_text("print('nothing')\n")
    run = someone.types("run", "-q", "--no-doctor")
    someone.types("wait", run, "-q")

    with pytest.raises(WrongUse, match="has no checkpoint"):
        someone.types("rerun", run, "--from-checkpoint")
    with pytest.raises(SettingsError):
        someone.types("rerun", run, "--", "{nonsense}")


def test_a_run_is_deleted_on_its_cluster_and_what_was_fetched_stays(someone, stopped):
    folder = someone.user.home / "store/runs" / stopped

    with pytest.raises(WrongUse, match="nothing was deleted"):
        someone.types("delete", stopped)
    said = someone.types("delete", stopped, "--yes", "--fetch", both=True)

    assert f"deleted {stopped}" in said
    assert not folder.exists()
    assert (someone.project / f"results/{stopped}/output/checkpoint-002.json").exists()
    with pytest.raises(NoSuchRun):
        someone.types("status", stopped)


def test_what_would_be_lost_is_said_and_what_was_fetched_is_not(someone, stopped):
    before = rabaska_delete(someone, stopped)
    someone.types("fetch", stopped)
    after = rabaska_delete(someone, stopped)

    assert before.not_fetched == (
        "logs/job-001.log",
        "output/checkpoint-001.json",
        "output/checkpoint-002.json",
    )
    assert after.not_fetched == ()
    assert (someone.user.home / "store/runs" / stopped).exists()


def rabaska_delete(someone, run):
    someone.goes_there()
    (doomed,) = rabaska.delete(run).doomed
    return doomed


def test_a_run_that_is_not_over_is_not_deleted(someone):
    (someone.project / "train.py").write_text("import time; time.sleep(60)\n")
    run = someone.types("run", "-q", "--no-doctor")

    with pytest.raises(WrongUse, match="rabaska cancel"):
        someone.types("delete", run, "--yes")

    assert (someone.user.home / "store/runs" / run).exists()
    someone.types("cancel", run)


@pytest.mark.parametrize("trick", ["link", "no plan", "path"])
def test_a_folder_that_is_no_run_of_ours_is_never_deleted(someone, stopped, trick):
    folder = someone.user.home / "store/runs" / stopped
    precious = someone.user.home.parent / "precious"
    record = someone.user.home / f"runs/{stopped}.json"
    if trick == "link":
        folder.rename(precious)
        folder.symlink_to(precious)
    elif trick == "no plan":
        (folder / "run.json").unlink()
        precious = folder
    else:
        precious.mkdir()
        (precious / "run.json").write_text("{}")
        value = json.loads(record.read_text())
        record.write_text(json.dumps({**value, "path": str(precious), "id": ""}))
    before = sorted(precious.rglob("*"))

    with pytest.raises((WrongUse, NoSuchRun)):
        someone.types("delete", stopped, "--yes")

    assert sorted(precious.rglob("*")) == before
    assert precious.exists()


def test_a_run_whose_folder_is_gone_is_only_dropped_from_the_list(someone, stopped):
    import shutil

    shutil.rmtree(someone.user.home / "store/runs" / stopped)

    assert f"deleted {stopped}" in someone.types("delete", stopped, "--yes", both=True)
    assert not (someone.user.home / f"runs/{stopped}.json").exists()


def test_notes_tags_and_the_commit_are_shown(someone):
    (someone.project / "train.py").write_text("print('accuracy 0.5')\n")
    words = ["--note", "wide net", "--tag", "paper", "--tag", "v2", "--no-doctor", "-q"]
    run = someone.types("run", *words, draws=["0001"])
    someone.types("wait", run, "-q")

    listed = someone.types("status", "--all", "--filter", "tag=paper")
    one = someone.types("status", run)
    someone.types("note", run, "wide", "net,", "slow", "--untag", "v2")
    json_said = json.loads(someone.types("note", run, "--json"))

    assert "wide net #paper #v2" in listed
    assert "your note: wide net #paper #v2" in one
    assert json_said == {"run": run, "note": "wide net, slow", "tags": ["paper"]}
    assert someone.types("status", "--filter", "text that no run has") == ""
    someone.types("note", run, "")
    assert someone.status(run)["note"] == ""
    assert plan_of(someone, run)["about"]["note"] == "wide net"
    assert "wide net #paper #v2" in someone.types("show", run)


def test_a_program_that_wrote_nothing_is_named_when_its_run_is_fetched(laptop):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")

    said = laptop.types("fetch", run, both=True)
    told = json.loads(laptop.types("fetch", run, "--json"))

    assert f"the program of {run} wrote nothing into its output folder" in said
    assert f"0 new files of {run} in" in said
    assert (told["written"], told["files"]) == (0, told["own_files"])


def test_what_an_option_just_changed_is_not_said_to_stay(someone, stopped):
    (someone.project / "rabaska.toml").write_text(SETTINGS.replace("40s", "2h"))

    said = someone.types("resume", stopped, "--walltime", "50s", both=True)

    assert "walltime: 40 s -> 50 s" in said
    assert "stays" not in said


def test_resume_says_which_changes_it_does_not_take_up_and_what_does(someone, stopped):
    (someone.project / "train.py").write_text(TRAIN.replace("begins with", "now at"))
    (someone.project / "rabaska.toml").write_text(
        SETTINGS + '[environment]\nvariables = {GREETING = "hello"}\n'
    )

    said = someone.types("resume", stopped, both=True)
    someone.types("wait", stopped, "-q")

    remedy = f"rabaska rerun {stopped} --with-code new --from-checkpoint"
    assert "though changed: [environment] in rabaska.toml, train.py changed;" in said
    assert f"`{remedy}` uses what is there now" in said

    someone.types(*remedy.split()[1:], draws=["0002"])
    someone.types("wait", "tiny-0002", "-q")

    assert "now at 4" in printed(someone, "tiny-0002")
    assert plan_of(someone, "tiny-0002")["variables"]["GREETING"] == "hello"


def test_resume_of_an_unchanged_project_says_nothing_of_its_code(someone, stopped):
    assert "changed" not in someone.types("resume", stopped, both=True)


def test_a_run_whose_code_is_on_neither_computer_is_not_submitted(stopped, someone):
    (code,) = (someone.user.home / "store/code").glob("*.tar")
    code.unlink()

    with pytest.raises(WrongUse, match="the code of run tiny-0001 is neither on here") as refused:
        rabaska.resume(stopped)

    assert "--with-code new --from-checkpoint" in refused.value.hint
    assert rabaska.status(stopped).jobs[-1].number == 1


def test_a_run_whose_data_is_on_neither_computer_is_not_submitted(someone):
    (someone.project / "images").mkdir()
    (someone.project / "images" / "1.txt").write_text("1")
    data = '[data.images]\npath = "images"\n'
    (someone.project / "rabaska.toml").write_text(SETTINGS + data)
    run = someone.types("run", "-q", "--no-doctor", draws=["0001"])
    someone.types("wait", run, "-q")
    (pack,) = (someone.user.home / "store/packs").glob("images-*")
    (pack / "shard-00000.tar").unlink()

    with pytest.raises(DatasetError, match="is neither on here nor on this computer") as refused:
        rabaska.resume(run)

    assert "`rabaska pack` makes it again" in refused.value.hint
    rabaska.pack(someone.project)
    assert rabaska.resume(run).run == run
