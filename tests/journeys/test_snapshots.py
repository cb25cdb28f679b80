"""Which files of a project are its code."""

import tarfile

from rabaska.records.home import Home
from rabaska.settings.project_file import load
from rabaska.steps.carry import take_snapshot
from rabaska.steps.progress import SilentReporter

SETTINGS = """
name = "it"
command = "python train.py"

[data.images]
path = "data"

[output]
keep = ["runs", "out/logs/"]

[code]
exclude = ["*.bin"]
"""


def test_only_the_folders_at_the_root_are_left_out_by_their_place(tmp_path):
    """`mypkg/results` is code, though fetched results lie in `results`."""
    folder = tmp_path / "project"
    apart = ["data", "results", "runs", "out/logs"]
    for below in (*apart, *(f"mypkg/{each}" for each in apart)):
        (folder / below).mkdir(parents=True)
        (folder / below / "it.py").touch()
        (folder / below / "it.bin").touch()
    (folder / "train.py").touch()
    (folder / "results" / ".gitignore").touch()  # so that the program finds the folder
    (folder / "rabaska.toml").write_text(SETTINGS)

    taken = take_snapshot(load(folder), Home(tmp_path / "home"), SilentReporter())

    with tarfile.open(taken.path) as tar:
        inside = [f"mypkg/{each}/it.py" for each in sorted(apart)]
        assert tar.getnames() == [*inside, "rabaska.toml", "results/.gitignore", "train.py"]


def test_no_copy_of_a_key_in_the_settings_travels(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    settings = (
        SETTINGS
        + """
[environment]
secrets = ["HF_TOKEN"]
variables = {WANDB_API_KEY = "wandb-0123456789"}
"""
    )
    for name in ("rabaska.toml", "rabaska.toml~", "rabaska.toml.bak", "sub/config.toml"):
        (folder / name).write_text(settings)
    (folder / "notes.txt").write_text("hf_0123456789")
    (folder / "train.py").touch()

    taken = take_snapshot(load(folder), Home(tmp_path / "home"), SilentReporter())

    copies = ("notes.txt", "rabaska.toml.bak", "rabaska.toml~", "sub/config.toml")
    assert taken.withheld == copies
    assert b"0123456789" not in taken.path.read_bytes()
