"""The code of a project as one file that never changes."""

import os
import tarfile
from pathlib import Path

import pytest

from rabaska.errors import DatasetError
from rabaska.packing import snapshot as snapshots
from rabaska.packing.snapshot import snapshot


@pytest.fixture
def project(tmp_path) -> Path:
    folder = tmp_path / "project"
    for name in (
        "train.py", "model/net.py", "model/__pycache__/net.pyc", ".git/HEAD", ".venv/bin/python",
        "myenv/pyvenv.cfg", "myenv/lib/big.py", "data/cats/1.jpg", "notes é.txt",
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "train.py").chmod(0o755)
    return folder


def names(taken) -> list[str]:
    with tarfile.open(taken.path) as tar:
        return tar.getnames()


def test_code_is_taken_and_what_can_be_made_again_is_not(project, tmp_path):
    taken = snapshot(project, tmp_path / "code", exclude=["data"])

    assert names(taken) == ["model/net.py", "notes é.txt", "train.py"]
    assert taken.files == 3
    assert taken.path == tmp_path / "code" / f"{taken.digest}.tar"


def test_an_untouched_checkout_has_the_same_digest(project, tmp_path):
    before = snapshot(project, tmp_path / "code")
    for path in project.rglob("*"):
        os.utime(path, (1, 1))

    after = snapshot(project, tmp_path / "code")

    assert after == before
    assert list((tmp_path / "code").iterdir()) == [after.path]


def test_one_changed_letter_gives_another_digest(project, tmp_path):
    before = snapshot(project, tmp_path / "code")
    (project / "train.py").write_text("Train.py")

    assert snapshot(project, tmp_path / "code").digest != before.digest


def test_a_program_stays_executable(project, tmp_path):
    with tarfile.open(snapshot(project, tmp_path / "code").path) as tar:
        assert tar.getmember("train.py").mode == 0o755
        assert tar.getmember("model/net.py").mode == 0o644


@pytest.mark.parametrize("pattern", ["data", "data/*", "*.jpg", "data/cats"])
def test_what_is_excluded_stays_at_home(project, tmp_path, pattern):
    assert "data/cats/1.jpg" not in names(snapshot(project, tmp_path / "code", exclude=[pattern]))


def test_a_whole_path_can_be_excluded(project, tmp_path):
    taken = snapshot(project, tmp_path / "code", exclude=[str(project / "data"), "/elsewhere"])

    assert "data/cats/1.jpg" not in names(taken)


def test_version_control_may_say_what_is_code(project, tmp_path):
    listed = ["train.py", "data/cats/1.jpg", ".venv/bin/python", "deleted.py"]

    taken = snapshot(project, tmp_path / "code", exclude=["data"], listed=lambda _: listed)

    assert names(taken) == ["train.py"]


def test_a_folder_that_version_control_does_not_know_is_taken_whole(project, tmp_path):
    taken = snapshot(project, tmp_path / "code", exclude=["data"], listed=lambda _: None)

    assert "model/net.py" in names(taken)


def test_links_inside_stay_links_and_files_outside_come_along(project, tmp_path):
    (tmp_path / "shared.py").write_text("shared")
    os.symlink("net.py", project / "model/latest.py")
    os.symlink("../../shared.py", project / "model/shared.py")

    taken = snapshot(project, tmp_path / "code")

    with tarfile.open(taken.path) as tar:
        assert tar.getmember("model/latest.py").linkname == "net.py"
        shared = tar.extractfile("model/shared.py")
        assert shared is not None
        assert shared.read() == b"shared"


def test_a_link_to_a_folder_outside_is_refused_with_a_way_out(project, tmp_path):
    os.symlink("/etc", project / "model/elsewhere")

    with pytest.raises(DatasetError) as caught:
        snapshot(project, tmp_path / "code")

    assert "model/elsewhere" in caught.value.what
    assert "[data]" in caught.value.hint


@pytest.mark.slow
def test_too_many_files_are_refused_and_named(project, tmp_path):
    for number in range(snapshots.MOST_FILES + 1):
        (project / "data" / str(number)).touch()

    with pytest.raises(DatasetError) as caught:
        snapshot(project, tmp_path / "code")

    assert "data holds 20002 files" in caught.value.why
    assert "[data]" in caught.value.hint
    assert not (tmp_path / "code").exists()


def test_too_many_bytes_are_refused_and_named(project, tmp_path):
    with (project / "model/weights.bin").open("wb") as stream:
        stream.truncate(snapshots.MOST_BYTES + 1)

    with pytest.raises(DatasetError, match="200 MB"):
        snapshot(project, tmp_path / "code")
