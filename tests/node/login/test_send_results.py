"""The far end of a fetch, run as the login node runs it."""

import hashlib
import json
import os
import subprocess
import sys

from rabaska.node.login import send_results


def offered(act, folder, feed=b""):
    return subprocess.run(
        [sys.executable, "-m", "rabaska.node", "send-results", act, str(folder)],
        input=feed,
        capture_output=True,
        check=False,
    )


def given(folder, *wanted):
    return offered("give", folder, json.dumps(wanted).encode() + b"\n")


def test_files_and_links_are_listed_and_nothing_else(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "é b.txt").write_text("12345")
    (tmp_path / "link").symlink_to("sub")
    os.mkfifo(tmp_path / "pipe")

    lines = [json.loads(line) for line in offered("list", tmp_path).stdout.splitlines()]

    assert [(each["path"], each["link"]) for each in lines] == [
        ("link", "sub"),
        ("sub/é b.txt", None),
    ]
    assert lines[1]["size"] == 5
    assert lines[1]["mtime_ns"] == (tmp_path / "sub" / "é b.txt").stat().st_mtime_ns


def test_what_follows_an_offset_is_given_and_the_whole_is_vouched_for(tmp_path):
    content = os.urandom(3_000_000)
    file = tmp_path / "model.pt"
    file.write_bytes(content)
    known = (len(content), file.stat().st_mtime_ns)

    head, _, rest = given(tmp_path, ["model.pt", *known, 2_999_000]).stdout.partition(b"\n")

    assert json.loads(head) == {"size": known[0], "mtime_ns": known[1], "offset": 2_999_000}
    assert rest[:1000] == content[-1000:]
    assert json.loads(rest[1000:]) == {
        "sha256": hashlib.sha256(content).hexdigest(), "changed": False, "problem": "",
    }  # fmt: skip


def test_a_file_that_changed_is_given_from_its_beginning(tmp_path):
    (tmp_path / "log").write_bytes(b"another file by now")

    head, _, rest = given(tmp_path, ["log", 5, 12345, 3]).stdout.partition(b"\n")

    assert json.loads(head)["offset"] == 0
    assert rest.startswith(b"another file by now")


def test_a_file_that_is_gone_is_told_and_the_others_follow(tmp_path):
    (tmp_path / "b").write_bytes(b"bb")

    lines = given(tmp_path, ["a", 1, 1, 0], ["b", 2, 1, 0]).stdout.splitlines()

    assert json.loads(lines[0])["size"] == -1
    assert json.loads(lines[1])["size"] == 2


def test_a_folder_that_is_not_there_has_an_exit_code_of_its_own(tmp_path):
    assert offered("list", tmp_path / "renamed").returncode == send_results.GONE
    assert given(tmp_path / "renamed").returncode == send_results.GONE


def test_what_cannot_be_read_is_told_with_its_reason(ordinary_folder, capfdbinary):
    (ordinary_folder / "closed").mkdir(mode=0)
    (ordinary_folder / "secret.pt").touch(mode=0)

    listed = {
        each["path"]: each.get("problem") for each in send_results.listing(str(ordinary_folder))
    }
    send_results._give(str(ordinary_folder), "secret.pt", (0, 0), 0)
    told = json.loads(capfdbinary.readouterr().out)

    (ordinary_folder / "closed").chmod(0o700)
    assert listed == {"closed/": "Permission denied", "secret.pt": None}
    assert (told["size"], told["problem"]) == (-1, "Permission denied")
