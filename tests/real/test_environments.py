"""Environments on a real Slurm: modules, a wheelhouse, one archive, and nodes without internet."""

import json
import shutil
import subprocess

import pytest
from tests.environments.small_wheels import make_wheel

pytestmark = [pytest.mark.real, pytest.mark.slow]

# Says which environment it runs in, and with which version of the package.
TRAIN = """
import json, os, sys
import paddle

told = {"prefix": sys.prefix, "paddle": paddle.VERSION, "modules": os.environ.get("EBROOTPYTHON")}
json.dump(told, open(os.path.join(os.environ["RABASKA_OUTPUT"], "told.json"), "w"))
"""


@pytest.fixture
def paddler(voyager):
    """A voyager whose program needs the package `paddle`, and whose pip has no settings."""
    voyager.lab.path("/etc/pip.conf").write_text("")
    voyager.write("train.py", TRAIN)
    voyager.settings(command='"python train.py"', jobs="1")
    # The lab gives a job 100 MB, and what lies on the node's disk counts.
    voyager.add_settings('\n[cluster.lab.resources]\nmemory = "1 GB"\n')
    voyager.write("requirements.txt", "paddle>=2\n")
    return voyager


@pytest.fixture
def wheelhouse(paddler):
    """The site's own folder of wheels, under the name that the lab knows it by."""
    name = f"/opt/site/wheels/{paddler.home.parent.name}"
    folder = paddler.lab.path(name)
    make_wheel(folder, "paddle", "2.1", needs=["canoe"])
    make_wheel(folder, "canoe")
    with paddler.profile.open("a") as profile:
        profile.write(f'[software]\nmodules = ["python/3.11"]\nwheelhouse = ["{name}"]\n')
    return folder


def told_by(user, run):
    ended = user.until(lambda status: status["state"] in ("finished", "failed"), run)
    assert ended["state"] == "finished", ended
    return json.loads(user.lab.path(f"{user.store}/runs/{run}/output/told.json").read_text())


def environment_files(user):
    return sorted(path.suffix for path in user.lab.path(f"{user.store}/envs").iterdir())


def test_a_virtualenv_is_built_on_the_nodes_own_disk_from_the_wheelhouse(paddler, wheelhouse):
    paddler.add_settings('\n[environment]\nkind = "virtualenv"\n')

    run = paddler.types("run", "--on", "lab")

    told = told_by(paddler, run.output.strip())
    assert told["paddle"] == "2.1"
    assert told["prefix"].startswith("/lscratch/")
    assert told["modules"] == "/opt/site/software/python/3.11"
    assert "2 packages from the site; 2 files in the store" in run.errors
    assert environment_files(paddler) == [".json", ".txt"]


BOTH_AT_ONCE = """\
import argparse, os, sys, time
import paddle
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--meeting")
options = parser.parse_args()
print("prefix", sys.prefix, "data", os.environ["RABASKA_DATA"], flush=True)
open(os.path.join(options.meeting, os.environ["SLURM_JOB_ID"]), "w").close()
while len(os.listdir(options.meeting)) < 2:
    time.sleep(0.05)
print("epoch 1 val_accuracy", options.lr, flush=True)
"""
SEARCH = """
[environment]
kind = "virtualenv"
[search]
metric = "val_accuracy"
method = "grid"
at_once = 2
[search.space]
lr = [0.1, 0.01]
"""


def test_workers_of_a_search_on_one_node_share_its_data(paddler, wheelhouse):
    """Where all jobs of a user see one folder of the node; this one lies in memory, where no
    environment is kept (see test_kept_environment)."""
    profile = paddler.profile.read_text()
    paddler.profile.write_text(profile.replace("store =", 'local = "/tmp"\nstore =', 1))
    meeting = f"{paddler.lab.home}/{paddler.home.parent.name}.meeting"
    paddler.lab.shell(f"mkdir {meeting}")
    paddler.write("train.py", BOTH_AT_ONCE)
    toml = paddler.project / "rabaska.toml"
    node = paddler.lab.site.nodes[0].name
    text = toml.read_text().replace("[data.numbers]\n", '[data.numbers]\nas = "shards"\n')
    text = text.replace(
        "[cluster.lab.", f'[cluster.lab]\nnative = ["--nodelist={node}"]\n[cluster.lab.'
    )
    toml.write_text(text + SEARCH)

    words = ("search", "run", "--on", "lab", "--no-doctor", "--wait", "--json")
    trials = json.loads(paddler.types(*words, "--", "--meeting", meeting).output)["trials"]

    assert [one["why"] for one in trials] == ["", ""]
    logs = [paddler.types("logs", one["run"], "--on", "lab").output for one in trials]
    places = {log.split(" data ")[1].split()[0] for log in logs}
    assert len(places) == 1
    assert places.pop().endswith(".arriving")


def test_missing_packages_are_named_before_anything_is_submitted(paddler, wheelhouse):
    paddler.write("requirements.txt", "paddle\nsextant-of-nobody\nastrolabe-of-nobody>=2\n")
    paddler.add_settings('\n[environment]\nkind = "virtualenv"\n')

    said = paddler.types("run", "--on", "lab", code=11).errors

    assert "sextant-of-nobody, astrolabe-of-nobody>=2" in said
    assert "No matching distribution found" in said
    assert paddler.lab.shell("squeue --noheader --me") == ""
    assert not paddler.lab.path(f"{paddler.store}/runs").exists()


def test_wheels_that_the_site_lacks_come_from_this_computer(
    paddler, wheelhouse, tmp_path, monkeypatch
):
    (wheelhouse / "paddle-2.1-py3-none-any.whl").unlink()
    make_wheel(tmp_path / "mine", "paddle", "2.5", needs=["canoe"])
    make_wheel(tmp_path / "mine", "canoe", "1.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mine"))
    paddler.add_settings('\n[environment]\nkind = "virtualenv"\n')

    run = paddler.types("run", "--on", "lab")

    assert told_by(paddler, run.output.strip())["paddle"] == "2.5"
    assert "packages from this computer; 3 files in the store" in run.errors
    assert environment_files(paddler) == [".json", ".tar", ".txt"]


def test_what_was_found_once_is_not_asked_again_and_a_failed_build_is_told(paddler, wheelhouse):
    paddler.add_settings('\n[environment]\nkind = "virtualenv"\n')
    paddler.run()
    shutil.rmtree(wheelhouse)  # pip would find nothing now, and the job will not either

    run = paddler.types("run", "--on", "lab")

    assert "2 packages from the site" in run.errors
    ended = paddler.until(lambda status: status["state"] == "failed", run.output.strip())
    assert "its environment could not be made: ERROR: No matching" in ended["reason"]
    assert "No matching distribution found for" in ended["tail"]


def made_on_the_cluster(user, wheelhouse, folder):
    """What a user made by hand on the login node, long ago."""
    place = str(wheelhouse).partition("/opt/")[2]
    user.lab.shell(
        f"/usr/bin/python3 -m venv {folder} && "
        f"{folder}/bin/pip install --quiet --no-index --find-links /opt/{place} paddle"
    )


def test_an_environment_that_the_user_made_is_activated(paddler, wheelhouse):
    folder = f"{paddler.lab.home}/{paddler.home.parent.name}"
    made_on_the_cluster(paddler, wheelhouse, folder)
    paddler.add_settings(f'\n[environment]\npath = "~/{paddler.home.parent.name}"\n')

    told = told_by(paddler, paddler.run())

    assert told["prefix"] == folder


def test_an_environment_that_is_not_there_is_told_before_submission(paddler):
    paddler.add_settings('\n[environment]\npath = "~/no_env"\n')

    said = paddler.types("run", "--on", "lab", code=11).errors

    assert "the environment `~/no_env` cannot be activated on lab" in said
    assert "no_env/bin/activate: No such file or directory" in said


def test_a_module_that_is_not_there_is_told_before_submission(paddler):
    paddler.add_settings(
        '\n[environment]\nrequirements = "requirements.txt"\nmodules = ["julia"]\n'
    )

    said = paddler.types("run", "--on", "lab", code=11).errors

    assert "julia" in said


def test_a_virtualenv_on_the_cluster_is_packed_and_unpacked_on_the_node(paddler, wheelhouse):
    folder = f"{paddler.lab.home}/{paddler.home.parent.name}-packed"
    made_on_the_cluster(paddler, wheelhouse, folder)
    paddler.add_settings(f'\n[environment]\nkind = "packed"\npath = "{folder}"\n')

    run = paddler.types("run", "--on", "lab")

    told = told_by(paddler, run.output.strip())
    assert told["prefix"].startswith("/lscratch/")
    assert told["paddle"] == "2.1"
    assert "1 file in the store" in run.errors
    assert environment_files(paddler) == [".json", ".tar"]


def test_an_archive_in_the_project_travels_once_and_not_as_code(paddler, tmp_path):
    subprocess.run(["/usr/bin/python3", "-m", "venv", tmp_path / "made"], check=True)
    wheel = make_wheel(tmp_path / "wheels", "paddle", "2.1")
    subprocess.run(
        [tmp_path / "made/bin/pip", "install", "--quiet", "--no-index", wheel], check=True
    )
    archive = paddler.project / "env.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", tmp_path / "made", "."], check=True)
    paddler.add_settings('\n[environment]\nkind = "packed"\npath = "env.tar.gz"\n')

    run = paddler.run()

    assert told_by(paddler, run)["paddle"] == "2.1"
    assert environment_files(paddler) == [".gz", ".json"]
    code = paddler.lab.path(f"{paddler.store}/code")
    assert all(file.stat().st_size < 100_000 for file in code.iterdir())


def test_once_builds_one_environment_in_the_store_and_counts_its_files(paddler, wheelhouse):
    paddler.add_settings('\n[environment]\nkind = "virtualenv"\nbuild = "once"\n')
    paddler.lab.path("/etc/pip.conf").write_text("[global]\nno-index = true\n")

    run = paddler.types("run", "--on", "lab")

    assert told_by(paddler, run.output.strip())["prefix"].startswith(f"{paddler.store}/envs/")
    assert "files in the store" in run.errors


def test_once_takes_the_wheels_that_this_computer_sends(paddler, tmp_path, monkeypatch):
    make_wheel(tmp_path / "mine", "paddle", "2.5")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mine"))
    paddler.add_settings('\n[environment]\nkind = "virtualenv"\nbuild = "once"\n')

    run = paddler.types("run", "--on", "lab")

    told = told_by(paddler, run.output.strip())
    assert told["paddle"] == "2.5"
    assert told["prefix"].startswith(f"{paddler.store}/envs/")
    assert "this computer fetches them" in run.errors


ON_EVERY_NODE = """
import subprocess

say = "import paddle, socket; print(socket.gethostname(), paddle.__file__)"
subprocess.run(["srun", "--ntasks=2", "--ntasks-per-node=1", "python", "-c", say], check=True)
"""


def test_on_two_nodes_each_builds_its_own(paddler, wheelhouse):
    paddler.write("train.py", TRAIN + ON_EVERY_NODE)
    paddler.add_settings('nodes = 2\n[environment]\nkind = "virtualenv"\n')

    run = paddler.run()

    told_by(paddler, run)
    log = paddler.types("logs", run).output
    assert "sdumont3170 /lscratch/" in log
    assert "sdumont3171 /lscratch/" in log
