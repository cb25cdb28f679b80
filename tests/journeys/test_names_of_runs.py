"""Two runs of one name: never one folder, and no command takes one for the other."""

import io
import json
import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from rabaska.errors import RabaskaError
from rabaska.records.run_index import RunRecord, adopt, enter, remembered


def output(laptop, run):
    laptop.types("wait", run, "--quiet")
    return laptop.types("logs", run).splitlines()[-1]


def test_a_name_that_is_taken_on_this_computer_is_not_given_again(laptop):
    first = laptop.types("run", "-q", draws=["7f3a", "7f3a"])
    laptop.says("second")
    second = laptop.types("run", "-q", draws=["7f3a", "7f3a", "0001"])

    assert (first, second) == ("tiny-7f3a", "tiny-0001")
    assert output(laptop, first) == "first"
    assert output(laptop, second) == "second"


def test_a_name_that_another_computer_gave_on_the_cluster_is_not_given_again(laptop, other):
    first = laptop.types("run", "-q", draws=["7f3a"])
    second = other.types("run", "-q", draws=["7f3a", "7f3a", "0001"])

    assert (first, second) == ("tiny-7f3a", "tiny-0001")
    assert output(laptop, first) == "first"
    assert output(other, second) == "second"
    assert [each.name for each in remembered(other.user.home / "runs")] == ["tiny-0001"]


def test_when_all_short_names_are_taken_longer_ones_are_given(laptop):
    laptop.types("run", "-q", draws=["7f3a"])

    assert laptop.types("run", "-q", draws=["7f3a"] * 8 + ["0123456789ab"]) == "tiny-0123456789ab"


def replaced(laptop, other):
    """A run of one laptop whose folder was deleted, and another's in its place."""
    run = laptop.types("run", "-q", draws=["7f3a"])
    laptop.types("wait", run, "-q")
    shutil.rmtree(laptop.user.home / "store" / "runs" / run)
    assert other.types("run", "-q", draws=["7f3a"]) == run
    other.types("wait", run, "-q")
    return run


def test_no_command_takes_another_run_of_that_name_for_the_one_it_knows(laptop, other):
    run = replaced(laptop, other)
    folder = laptop.user.home / "store" / "runs" / run
    before = {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}

    for command in ("fetch", "cancel", "resume", "logs", "show", "explain"):
        with pytest.raises(RabaskaError, match="is not on here") as refused:
            laptop.types(command, run)
        assert "another run of that name" in refused.value.why
    told = laptop.status(run)

    assert {path: path.lstat().st_mtime_ns for path in folder.rglob("*")} == before
    assert not (laptop.user.project / "results").exists()
    assert told["state"] == "gone"
    assert "belongs to another run of that name" in told["reason"]
    assert told["jobs"] == []
    assert other.status(run)["state"] == "finished"


def test_runs_that_were_made_before_there_were_ids_are_themselves(laptop):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    plan = laptop.user.home / "store" / "runs" / run / "run.json"
    record = laptop.user.home / "runs" / f"{run}.json"
    for file in (plan, record):
        told = json.loads(file.read_text())
        del told["id"]
        file.write_text(json.dumps(told, indent=1, sort_keys=True))
    shutil.rmtree(laptop.user.home / "reports")

    assert laptop.status(run)["state"] == "finished"
    assert output(laptop, run) == "first"
    assert laptop.types("fetch", run).endswith(run)


def test_an_old_record_is_not_answered_by_a_new_run_of_its_name(laptop):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    record = laptop.user.home / "runs" / f"{run}.json"
    told = json.loads(record.read_text())
    del told["id"], told["number"]
    record.write_text(json.dumps(told))

    assert "another run" in laptop.status(run)["reason"]
    with pytest.raises(RabaskaError, match="is not on here"):
        laptop.types("logs", run)


@pytest.mark.parametrize("left", [0, 7, 40], ids="{} bytes".format)
def test_a_damaged_plan_is_not_taken_for_another_runs(laptop, left):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    plan = laptop.user.home / "store" / "runs" / run / "run.json"
    plan.write_bytes(plan.read_bytes()[:left])

    assert laptop.types("fetch", run).endswith(run)
    laptop.types("cancel", run)
    assert "first" in laptop.types("logs", run)
    with pytest.raises(RabaskaError) as refused:
        laptop.types("resume", run)
    assert "another run" not in f"{refused.value} {refused.value.why}"


def test_the_newest_run_is_counted_whatever_the_clock_says(laptop):
    first = laptop.types("run", "-q")
    later = laptop.user.home / "runs" / f"{first}.json"
    told = json.loads(later.read_text())
    later.write_text(json.dumps({**told, "created": told["created"] + 86400}))  # it was set back
    second = laptop.types("run", "-q")

    assert laptop.status("")["name"] == second
    names = [each["name"] for each in json.loads(laptop.types("status", "--all", "--json"))]
    assert names == [first, second]


def test_runs_that_begin_at_once_get_names_and_numbers_of_their_own(tmp_path):
    def begin(number):
        record = RunRecord("tiny-7f3a", "here", "/r", "/p", 0.0, id=str(number))
        other = RunRecord(f"tiny-{number}", "here", "/r", "/p", 0.0, id=f"x{number}")
        return enter(tmp_path, record), enter(tmp_path, other)

    with ThreadPoolExecutor(16) as crowd:
        entered = list(crowd.map(begin, range(16)))

    assert len([same for same, _ in entered if same]) == 1
    numbers = [each.number for each in remembered(tmp_path)]
    assert sorted(numbers) == list(range(1, 18))


def test_two_known_runs_of_one_name_are_told_apart_by_cluster_or_id(laptop):
    runs = laptop.user.home / "runs"
    for cluster, identity in (("here", "a" * 32), ("narval", "b" * 32)):
        adopt(runs, RunRecord("tiny-7f3a", cluster, "/gone", "", 0.0, id=identity))

    with pytest.raises(RabaskaError, match="several runs are called") as refused:
        laptop.types("status", "tiny-7f3a")

    assert "tiny-7f3a on here (id aaaaaaaaaaaa), tiny-7f3a on narval" in refused.value.what
    assert laptop.status("a" * 12)["cluster"] == "here"


def tar_of(name, text):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


def test_a_run_folder_that_is_made_twice_at_once_is_one_of_them(tmp_path):
    """The node's own word, from two login nodes of two laptops."""
    words = [sys.executable, "-m", "rabaska.node", "create", str(tmp_path / "runs" / "tiny-1")]
    tars = [tar_of("run.json", f'{{"id": "{number}"}}') for number in range(8)]

    def made(tar):
        return subprocess.run(words, input=tar, capture_output=True, check=False).returncode

    with ThreadPoolExecutor(8) as crowd:
        codes = list(crowd.map(made, tars))
    again = [made(tar) for tar in tars]

    assert sorted(codes) == [0] + [73] * 7
    assert again == codes
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["tiny-1"]
