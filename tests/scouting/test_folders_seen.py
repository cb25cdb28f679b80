"""Which folders are taken for data."""

from pathlib import Path

from rabaska.scouting import folders
from rabaska.scouting.data_options import described
from rabaska.scouting.folders import data_folders, survey


def fill(folder: Path, files: int = 120, suffix: str = ".jpg", size: int = 10) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        (folder / f"{number}{suffix}").write_bytes(b"x" * size)


def names(project: Path, written: set[str] | None = None) -> list[str]:
    return [folder.name for folder in data_folders(survey(project), written=written or set())]


def test_the_only_dataset_on_a_shelf_is_the_dataset(tmp_path):
    fill(tmp_path / "data/digits/train/0")
    fill(tmp_path / "data/digits/test/0")

    assert names(tmp_path) == ["data/digits"]


def test_several_datasets_on_a_shelf_are_told_apart(tmp_path):
    for name in ("cats", "dogs"):
        fill(tmp_path / "data" / name / "train")

    assert names(tmp_path) == ["data/cats", "data/dogs"]


def test_class_folders_belong_together(tmp_path):
    for name in ("cat", "dog"):
        fill(tmp_path / "pictures" / name)

    (found,) = data_folders(survey(tmp_path), written=set())

    assert described(found) == "pictures has 240 files, 2.4 kB, in 2 class folders"


def test_a_split_alone_does_not_hide_its_dataset(tmp_path):
    fill(tmp_path / "data/train/cat")

    assert names(tmp_path) == ["data"]


def test_what_the_program_writes_is_not_data(tmp_path):
    fill(tmp_path / "checkpoints", suffix=".pt")
    fill(tmp_path / "plots")

    assert names(tmp_path, written={"plots"}) == []


def test_code_environments_and_hidden_folders_are_not_data(tmp_path):
    fill(tmp_path / "package", suffix=".py")
    fill(tmp_path / ".cache")
    fill(tmp_path / "myenv/lib")
    (tmp_path / "myenv/pyvenv.cfg").write_text("")

    assert names(tmp_path) == []


def test_one_large_file_makes_a_dataset(tmp_path):
    (tmp_path / "records").mkdir()
    with open(tmp_path / "records/train.h5", "wb") as stream:
        stream.truncate(folders.MANY_BYTES)

    assert names(tmp_path) == ["records"]


def test_a_walk_that_is_cut_short_says_so(tmp_path, monkeypatch):
    fill(tmp_path / "a/b")
    monkeypatch.setattr(folders, "MOST_ENTRIES", 0)

    assert not survey(tmp_path).complete
