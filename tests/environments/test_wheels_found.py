"""The word `wheels`, run as it is on a login node, against real pip and real wheels."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.environments.small_wheels import make_wheel

from rabaska.environments.download import lacking
from rabaska.node.environment import pip_queries
from rabaska.node.environment.check_wheels import NOT_FOUND, _unpacked

# The machine's own settings for pip would add places where wheels are found.
OWN_SETTINGS = {"PIP_CONFIG_FILE": os.devnull}
SOURCE = Path(pip_queries.__file__).parent.parent.parent


@pytest.fixture
def wheelhouse(tmp_path):
    folder = tmp_path / "wheelhouse"
    make_wheel(folder, "paddle", "2.1", needs=["canoe>=1"])
    make_wheel(folder, "canoe", "1.0")
    make_wheel(folder, "canoe", "1.5")
    return folder


@pytest.fixture
def ask(tmp_path, wheelhouse):
    """Asks for wheels and returns the exit code and the answer."""

    def asking(requirements, variables={}, **changes):  # noqa: B006 - it is only read
        wanted = {
            "envs": str(tmp_path / "envs"), "digest": "d1", "python": sys.executable,
            "requirements": requirements, "wheelhouse": [str(wheelhouse)], "online": False,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "rabaska.node", "wheels"],
            input=json.dumps({**wanted, **changes}), capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), **OWN_SETTINGS,
                 **variables},
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    return asking


def test_what_pip_chose_is_pinned_for_every_job(ask, tmp_path):
    code, answer = ask("paddle  # with a comment\n")

    assert code == 0
    assert answer["source"] == "the site"
    assert (tmp_path / "envs" / "d1.txt").read_text() == "canoe==1.5\npaddle==2.1\n"
    assert answer["files"] == 8  # a module and three records in each wheel


def test_a_wheel_with_a_plus_in_its_name_is_read_as_well(ask, wheelhouse):
    make_wheel(wheelhouse, "torch", "2.5.1+cpu")

    code, answer = ask("torch\n")

    assert (code, answer["packages"]) == (0, ["torch==2.5.1+cpu"])
    assert answer["unread"] == []
    assert answer["modules"] == ["torch"]
    assert answer["room"] > 300


@pytest.mark.parametrize("told", ["PIP_REQUIRE_VIRTUALENV=1", "PIP_TARGET=/nowhere", "PIP_USER=1"])
def test_what_pip_was_told_for_other_occasions_does_not_count(ask, monkeypatch, told):
    name, _, value = told.partition("=")
    base = os.path.realpath(sys._base_executable)

    code, answer = ask("paddle\n", python=base, variables={name: value})

    assert (code, answer["packages"]) == (0, ["canoe==1.5", "paddle==2.1"])


def test_it_is_asked_once_for_each_recipe(ask, wheelhouse):
    first = ask("paddle\n")
    make_wheel(wheelhouse, "paddle", "3.0")

    assert ask("paddle\n") == first


@pytest.mark.slow
def test_every_missing_package_is_named_not_only_the_first(ask, tmp_path):
    code, answer = ask("sextant\npaddle\nastrolabe>=2\n")

    assert code == NOT_FOUND
    assert answer["missing"] == ["sextant", "astrolabe>=2"]
    assert "sextant" in answer["said"]
    assert list((tmp_path / "envs").iterdir()) == []


def test_a_missing_dependency_is_told_in_pips_words(ask, wheelhouse):
    make_wheel(wheelhouse, "rudder", needs=["tiller"])

    code, answer = ask("rudder\n")

    assert code == NOT_FOUND
    assert answer["missing"] == []
    assert "tiller" in answer["said"]


def test_wheels_that_were_sent_make_up_for_what_the_site_lacks(ask, tmp_path):
    sent = make_wheel(tmp_path / "sent", "sextant", needs=["paddle"])
    (tmp_path / "envs").mkdir()
    with tarfile.open(tmp_path / "envs" / "d1.tar", "w") as archive:
        archive.add(sent, sent.name)

    code, answer = ask("sextant\n")

    assert code == 0
    assert answer["source"] == "this computer"
    assert answer["archive"]
    assert answer["room"] > (tmp_path / "envs" / "d1.tar").stat().st_size  # both lie on the node
    assert "sextant==1.0\n" in (tmp_path / "envs" / "d1.txt").read_text()


def test_wheels_that_were_sent_in_vain_make_room_for_others(ask, tmp_path):
    (tmp_path / "envs").mkdir()
    tarfile.open(tmp_path / "envs" / "d1.tar", "w").close()

    code, _ = ask("sextant\n")

    assert code == NOT_FOUND
    assert not (tmp_path / "envs" / "d1.tar").exists()


def test_a_python_that_is_not_there_is_told(ask):
    code, said = ask("paddle\n", python="python9.9")

    assert code == 1
    assert said == "python9.9: No such file or directory\n"


def test_only_pips_that_can_report_are_asked_to():
    def with_pip(version):
        return pip_queries.Python("python3", "3.6.8", "x86_64", "glibc-2.17", version, "/usr/bin")

    assert not pip_queries.can_report(with_pip("9.0.3"))
    assert not pip_queries.can_report(with_pip("22.1.2"))
    assert pip_queries.can_report(with_pip("22.2"))
    assert pip_queries.can_report(with_pip("100.0.dev1"))


name = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._]{0,8}[A-Za-z0-9])?", fullmatch=True)


@given(st.lists(name), st.sampled_from(["", "  # why", "==1.0", " --hash=sha256:ab", "[extra]>=2"]))
def test_requirements_are_read_without_comments_and_options(names, after):
    text = "--index-url https://x\n# top\n" + "".join(f"{each}{after}\n\n" for each in names)

    found = pip_queries.lines(text)

    kept = after if after[:1] in ("=", "[") else ""
    assert found == [each + kept for each in names]


@given(name, st.from_regex(r"[0-9]+(\.[0-9]+){0,2}", fullmatch=True))
def test_a_wheels_name_and_version_are_read_from_its_file(project, version):
    spelled = pip_queries.normalised(project).replace("-", "_")

    package = pip_queries.named(f"/w/{spelled}-{version}-cp311-cp311-manylinux_2_17_x86_64.whl")

    assert pip_queries.normalised(package.name) == pip_queries.normalised(project)
    assert package.version == version


def test_what_a_killed_collector_left_is_swept_up_by_the_next(ask, tmp_path):
    left = tmp_path / "envs" / "d1.0123456789ab.partial"
    left.mkdir(parents=True)
    (left / "half.whl").touch()

    ask("paddle\n")

    assert sorted(path.name for path in (tmp_path / "envs").iterdir()) == ["d1.json", "d1.txt"]


def test_no_requirement_is_on_a_command_line_that_others_can_read(tmp_path):
    told = tmp_path / "told"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >> {told}\nfor last; do :; done\ncat "$last" >&2\n')
    python.chmod(0o755)
    asked = "a @ git+https://oauth2:hunter2@example.org/a.git"

    assert (
        pip_queries.unfindable(pip_queries.Python(str(python), "3.11", "", "", "23", ""), asked, [])
        == []
    )

    assert "--requirement" in told.read_text()
    assert "hunter2" not in told.read_text()


@pytest.mark.parametrize(
    "name", ["../../.bashrc", "../up.whl", "/tmp/abs.whl", "a/b.whl", "..", "."]
)
def test_only_plain_files_come_out_of_what_was_sent(tmp_path, name):
    archive, workshop = tmp_path / "sent.tar", tmp_path / "envs" / "workshop"
    workshop.mkdir(parents=True)
    with tarfile.open(archive, "w") as packed:
        for each in ("good.whl", name):
            entry = tarfile.TarInfo(each)
            entry.size = 3
            packed.addfile(entry, io.BytesIO(b"abc"))

    _unpacked(str(archive), str(workshop))

    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(map(str, files)) == ["envs/workshop/sent/good.whl", "sent.tar"]


def test_a_lock_is_followed_to_the_very_file(ask, wheelhouse, tmp_path):
    wheel = next(wheelhouse.glob("canoe-1.0*"))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()

    code, answer = ask(f"canoe==1.0 --hash=sha256:{digest}\n")

    assert (code, answer["packages"]) == (0, ["canoe==1.0"])
    text = (tmp_path / "envs" / "d1.txt").read_text()
    assert text == f"canoe==1.0 --hash=sha256:{digest}\n"


def test_a_wheel_of_the_site_that_is_not_the_locked_one_is_not_taken(ask):
    code, answer = ask(f"canoe==1.0 --hash=sha256:{'0' * 64}\n")

    assert code == NOT_FOUND
    assert "hash" in answer["said"].lower()


def test_of_a_lock_everything_is_fetched_whatever_the_cluster_named():
    locked = "canoe==1.0 --hash=sha256:aa\nkeel==2 --hash=sha256:bb\n"

    assert lacking(locked, ["keel==2"]) == locked
    assert lacking("canoe\nkeel\n", ["keel"]) == "keel"
