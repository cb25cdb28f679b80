"""A server that was set up anew gives ids again: no run takes another job for its own."""

import json
import shutil
from pathlib import Path

import pytest
from tests.voyages.conftest import end_everything_of
from tests.voyages.test_other_schedulers import Guest, _write, guest

__all__ = ["guest"]

pytestmark = pytest.mark.slow

# Slurm in three commands, for one job: what it carries is told as the format asks for it.
SLURM = {
    "sbatch": """#!/bin/sh
for word; do case $word in --comment=*) echo "${word#--comment=}" > FOLDER/comment;; esac; done
for script; do :; done
sed -n 's/^#SBATCH --job-name=//p' "$script" > FOLDER/name
echo 101
""",
    "squeue": r"""#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --format) format=$2; shift;; --format=*) format=${1#*=};; --noheader) bare=yes;; esac
  shift
done
[ "$bare" ] || echo "$format" | sed 's/%i/JOBID/; s/%T/STATE/'
echo "$format" | sed "s/%i/101/; s/%T/RUNNING/; s/%r/None/
s/%j/$(cat FOLDER/name)/; s/%k/$(cat FOLDER/comment)/; s/%S/N\/A/"
""",
    "sacct": "#!/bin/sh\nexit 1\n",
    "scancel": '#!/bin/sh\necho "$@" >> FOLDER/cancelled\n',
}


@pytest.fixture
def slurm(user):
    someone = Guest(user.project, user.home, "slurm")
    for name, text in SLURM.items():
        _write(someone.programs / name, text.replace("FOLDER", str(someone.programs)))
    profile = someone.home / "clusters" / "there.toml"
    profile.parent.mkdir()
    profile.write_text('title = "A stand-in"\nscheduler = "slurm"\n')
    return someone


def cancelled_at(slurm):
    path = slurm.programs / "cancelled"
    return path.read_text().split() if path.exists() else []


def test_another_job_under_the_id_of_a_run_is_neither_shown_nor_cancelled(slurm):
    run = slurm.run("--jobs", "1", "--no-doctor")
    before = slurm.status(run)["state"]
    (slurm.programs / "name").write_text("my-thesis")
    (slurm.programs / "comment").write_text("(null)")

    told = slurm.status(run)
    said = slurm.types("cancel", run)

    assert before == "running"
    assert told["state"] != "running"
    assert "id 101 belongs to another job now: `my-thesis`" in told["problems"]
    assert cancelled_at(slurm) == []
    assert "id 101 belongs to another job now: `my-thesis`" in said.errors + said.output


@pytest.mark.parametrize("renamed", [False, True], ids=["as submitted", "renamed"])
def test_a_job_with_the_mark_or_the_name_of_a_run_is_cancelled(slurm, renamed):
    run = slurm.run("--jobs", "1", "--no-doctor")
    changed = "name" if renamed else "comment"
    (slurm.programs / changed).write_text("something of the site")

    told = slurm.status(run)
    slurm.types("cancel", run, code=None)

    assert told["state"] == "running"
    assert told["problems"] == []
    assert cancelled_at(slurm) == ["101"]


def test_a_job_that_takes_the_id_between_status_and_cancel_is_left_alone(slurm):
    run = slurm.run("--jobs", "1", "--no-doctor")
    squeue = slurm.programs / "squeue"
    # Who looks at the moment of cancelling sees the other job.
    swap = f"""echo my-thesis > {slurm.programs}/name; : > {slurm.programs}/comment"""
    squeue.write_text(squeue.read_text().replace("--noheader)", f"--noheader) {swap};"))

    slurm.types("cancel", run, code=None)

    assert cancelled_at(slurm) == []


@pytest.mark.parametrize("guest", ["pbs", "torque", "moab"], indirect=True)
def test_a_job_of_another_name_is_not_deleted(guest):
    run = guest.run("--jobs", "1", "--", "--hold", "1")
    guest.until(lambda told: told["checkpoint"] is not None, run)
    [file] = (guest.programs / "spool").glob("*.json")
    partial = Path(f"{file}.partial")
    partial.write_text(json.dumps({**json.loads(file.read_text()), "name": "my-thesis"}))
    partial.rename(file)

    problems = guest.status(run)["problems"]
    guest.types("cancel", run)

    number = file.stem
    assert problems == [f"id {number} belongs to another job now: `my-thesis`"]
    assert not (guest.programs / "spool" / f"{number}.cancelled").exists()


def test_a_queue_that_was_deleted_gives_numbers_again_on_this_computer(user):
    one = user.types("run", "--jobs", "1", "--", "--hold", "1").output.strip()
    user.until(lambda told: told["checkpoint"] is not None, one)
    end_everything_of(user.home)
    shutil.rmtree(user.home / "store" / "queue")
    other = user.types("run", "--jobs", "1", "--", "--hold", "1").output.strip()
    user.until(lambda told: told["checkpoint"] is not None, other)

    told = user.status(one)
    user.types("cancel", one)

    assert told["state"] == "interrupted"
    assert told["problems"] == [f"id 1 belongs to another job now: `{other}`"]
    assert user.status(other)["state"] == "running"
    assert user.status(one)["state"] == "cancelled"
    user.types("cancel", other)
