"""Offline logs of W&B are uploaded from here, once somebody has said so, and when they grew."""

from pathlib import Path

import pytest

from rabaska.errors import SettingsError
from rabaska.node.job.program_environment import with_trackers
from rabaska.node.record.run_folder import RunFolder
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.settings.own_settings import own_notify, wandb_consent, write_wandb_consent
from rabaska.steps.sync_trackers import sync_wandb

RECORD = RunRecord("tiny-1", "campus", "/store/runs/tiny-1", "", 0.0, id="c" * 32)
LOG = "output/wandb/offline-run-20261118_1200-abc"
# A `wandb` that notes what it was asked, and fails while there is a file `down`.
WANDB = (
    '#!/bin/sh\ncd {}\necho "$@" >> asked\n[ ! -e down ] || {{ echo "not logged in"; exit 1; }}\n'
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("home", "bin", f"results/{LOG}"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "results" / LOG / "run-abc.wandb").write_bytes(b":W&B")
    program = tmp_path / "bin/wandb"
    program.write_text(WANDB.format(tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def sync(place, **said):
    return sync_wandb(RECORD, Home(place / "home"), place / "results", **said)


def asked(place):
    path = place / "asked"
    return path.read_text().splitlines() if path.exists() else []


def test_nothing_is_uploaded_before_somebody_said_so(place):
    first = sync(place)

    assert (first.logs, first.synced, first.unasked) == (1, (), True)
    assert asked(place) == []


def test_what_was_said_once_holds_and_what_did_not_grow_is_left(place):
    first, again = sync(place, sync=True), sync(place)
    with (place / "results" / LOG / "run-abc.wandb").open("ab") as log:
        log.write(b"more")
    grown = sync(place)

    assert (first.synced, again.logs, grown.synced) == ((LOG,), 0, (LOG,))
    assert asked(place) == [f"sync --include-synced {place / 'results' / LOG}"] * 2
    assert "wandb = true" in (place / "home/settings.toml").read_text()


def test_a_link_that_leads_nowhere_is_no_log(place):
    (place / "results" / LOG / "run-b.wandb").symlink_to("gone")

    assert sync(place).logs == 1


def test_who_declined_is_asked_no_more(place):
    sync(place, sync=False)

    assert not sync(place).unasked
    assert asked(place) == []


def test_a_failure_is_told_in_its_own_words_and_tried_again(place):
    (place / "down").touch()
    failed = sync(place, sync=True)
    (place / "down").unlink()

    assert failed.problem == "wandb said: not logged in"
    assert sync(place).synced == (LOG,)


def test_other_settings_stay_as_they_are(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('# mine\n[notify]\nwebhook = "https://x.org"  # here\n')

    write_wandb_consent(tmp_path, sync=True)
    write_wandb_consent(tmp_path, sync=False)

    assert file.read_text().startswith('# mine\n[notify]\nwebhook = "https://x.org"  # here\n')
    assert wandb_consent(tmp_path) is False
    file.write_text("[")
    with pytest.raises(SettingsError):
        write_wandb_consent(tmp_path, sync=True)
    assert file.read_text() == "["


@pytest.mark.parametrize(
    ("nodes", "given", "expected"),
    [
        ('{"internet": false}', {}, ("offline", "/out")),
        ('{"internet": true}', {}, (None, None)),
        ("", {}, (None, None)),
        ('{"internet": false}', {"WANDB_MODE": "online"}, ("online", None)),
        ("", {"WANDB_MODE": "offline", "WANDB_DIR": "/mine"}, ("offline", "/mine")),
    ],
)
def test_wandb_is_offline_where_no_node_reaches_its_server(tmp_path, nodes, given, expected):
    run = RunFolder(str(tmp_path / "runs/tiny"))
    if nodes:
        Path(run.nodes).write_text(nodes)

    found = with_trackers({"RABASKA_OUTPUT": "/out", **given}, run)

    assert (found.get("WANDB_MODE"), found.get("WANDB_DIR")) == expected


def test_what_was_said_of_trackers_is_no_mistake_for_others_who_read_the_file(tmp_path):
    write_wandb_consent(tmp_path, sync=True)

    assert own_notify(tmp_path) is not None
