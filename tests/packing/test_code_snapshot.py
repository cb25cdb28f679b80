"""The code of a project as one file that never changes."""

import os
import tarfile
from pathlib import Path

import pytest

from rabaska.domain.secrets import Secrets
from rabaska.errors import DatasetError
from rabaska.packing import code_snapshot as snapshots
from rabaska.packing.code_snapshot import snapshot


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
        assert tar.getmember("train.py").mode == 0o700
        assert tar.getmember("model/net.py").mode == 0o600


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


def test_links_inside_stay_links(project, tmp_path):
    os.symlink("net.py", project / "model/latest.py")
    os.symlink(project / "train.py", project / "model/start.py")

    taken = snapshot(project, tmp_path / "code")

    with tarfile.open(taken.path) as tar:
        assert tar.getmember("model/latest.py").linkname == "net.py"
        start = tar.extractfile("model/start.py")
        assert start is not None
        assert start.read() == b"train.py"  # its path means nothing elsewhere


@pytest.mark.parametrize("listed", [None, lambda _: ["train.py", "out/notes.txt"]])
@pytest.mark.parametrize("target", ["../../id_rsa", "{}/id_rsa", "../out/again"])
def test_a_link_out_of_the_project_is_refused(project, tmp_path, target, listed):
    (tmp_path / "id_rsa").write_text("PRIVATE KEY")
    (project / "out").mkdir()
    os.symlink(target.format(tmp_path), project / "out/notes.txt")
    os.symlink(tmp_path / "id_rsa", project / "out/again")

    with pytest.raises(DatasetError) as caught:
        snapshot(project, tmp_path / "code", listed=listed)

    assert "points outside the project" in caught.value.what
    assert "exclude" in caught.value.hint
    assert not list(tmp_path.glob("code/*.tar"))


def test_a_file_below_a_link_out_of_the_project_is_refused_too(project, tmp_path):
    """git lists what it tracks, also below a folder that became a link since."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/net.py").write_text("PRIVATE KEY")
    os.symlink(tmp_path / "keys", project / "pkg")

    with pytest.raises(DatasetError, match="pkg is a link that points outside the project"):
        snapshot(project, tmp_path / "code", listed=lambda _: ["train.py", "pkg/net.py"])


def test_a_link_that_is_excluded_is_not_refused(project, tmp_path):
    os.symlink("/etc/hostname", project / "model/elsewhere")

    taken = snapshot(project, tmp_path / "code", exclude=["model/elsewhere"])

    assert "model/elsewhere" not in names(taken)


def test_a_project_may_itself_be_reached_by_a_link(project, tmp_path):
    os.symlink(project, tmp_path / "short")

    taken = snapshot(tmp_path / "short", tmp_path / "code", exclude=["data"])

    assert taken.digest == snapshot(project, tmp_path / "code", exclude=["data"]).digest


@pytest.mark.parametrize("pattern", ["/results", "{}/results"])
def test_a_pattern_from_the_root_leaves_deeper_names_alone(project, tmp_path, pattern):
    for folder in ("results", "mypkg/results"):
        (project / folder).mkdir(parents=True)
        (project / folder / "made.py").touch()

    taken = names(snapshot(project, tmp_path / "code", exclude=[pattern.format(project)]))

    assert "mypkg/results/made.py" in taken
    assert "results/made.py" not in taken


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

    assert "data has 20002 files" in caught.value.why
    assert "[data]" in caught.value.hint
    assert not (tmp_path / "code").exists()


def test_too_many_bytes_are_refused_and_named(project, tmp_path):
    with (project / "model/weights.bin").open("wb") as stream:
        stream.truncate(snapshots.MOST_BYTES + 1)

    with pytest.raises(DatasetError, match="200 MB"):
        snapshot(project, tmp_path / "code")


@pytest.mark.parametrize("name", ["rabaska.toml", "sub/rabaska.toml"])
def test_settings_travel_without_their_secrets(project, tmp_path, name):
    (project / "sub").mkdir()
    (project / name).write_text('note = "it\'s"\n[environment.variables]\nDB_PASSWORD = 8675309\n')

    taken = snapshot(project, tmp_path / "code")

    assert taken.withheld == ()
    assert b"8675309" not in taken.path.read_bytes()
    with tarfile.open(taken.path) as tar:
        assert tar.extractfile(name).read().endswith(b'DB_PASSWORD = "***"\n')


def test_settings_that_a_link_leads_to_travel_without_their_secrets(project, tmp_path):
    (project / "lab.toml").write_text("[environment.variables]\nDB_PASSWORD = 'hunter2'\n")
    (project / "rabaska.toml").symlink_to("lab.toml")

    assert b"hunter2" not in snapshot(project, tmp_path / "code").path.read_bytes()


def test_settings_whose_secret_is_in_them_twice_stay_behind_even_if_asked_for(project, tmp_path):
    (project / "rabaska.toml").write_text("name = 'hunter2'\nDB_PASSWORD = 'hunter2'\n")

    taken = snapshot(project, tmp_path / "code", include=["rabaska.toml"])

    assert taken.withheld == ("rabaska.toml",)
    assert b"hunter2" not in taken.path.read_bytes()


COPIES = (
    "rabaska.toml~", "rabaska.toml.bak", "sub/rabaska.toml.orig", "rabaska.toml.swp",
    ".rabaska.toml.swp", "#rabaska.toml#", "netrc", "_netrc",
)  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_settings_stay_behind(project, tmp_path, name):
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("[environment.variables]\nDB_PASSWORD = 'hunter2'\n")

    taken = snapshot(project, tmp_path / "code")

    assert taken.withheld == (name,)
    assert b"hunter2" not in taken.path.read_bytes()


def test_a_file_that_holds_the_value_of_a_secret_stays_behind_unless_asked_for(project, tmp_path):
    (project / "config.toml").write_text("key = 'hunter2-hunter2'\n")
    (project / "binary").write_bytes(b"\0hunter2-hunter2\0")
    known = Secrets({"DB_PASSWORD": "hunter2-hunter2"})

    taken = snapshot(project, tmp_path / "code", secrets=known, include=["binary"])

    assert taken.withheld == ("config.toml",)
    assert "binary" in names(taken)


@pytest.mark.parametrize("value", ["short1", "val_loss_mean", ""])
def test_values_that_are_in_files_by_chance_keep_no_code_at_home(project, tmp_path, value):
    (project / "train.py").write_text("best = 'short1 val_loss_mean'")

    taken = snapshot(project, tmp_path / "code", secrets=Secrets({"SORT_KEY": value}))

    assert taken.withheld == ()


HEADER = "-----BEGIN OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize("text", [HEADER + "\nb3Bl\n", '{"key": "' + HEADER + '\\nb3Bl"}'])
def test_a_private_key_of_any_name_stays_behind(project, tmp_path, text):
    (project / "deploy_key").write_text(text)

    assert snapshot(project, tmp_path / "code").withheld == ("deploy_key",)


def test_a_program_that_knows_what_keys_look_like_is_code(project, tmp_path):
    (project / "train.py").write_text(f'is_key = text.startswith("{HEADER}\\n")\n')

    assert snapshot(project, tmp_path / "code").withheld == ()
