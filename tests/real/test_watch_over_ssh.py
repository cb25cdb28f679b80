"""`rabaska watch` over ssh: one connection, its bytes, and what is shown while it is lost."""

import shutil
import sys

import pytest
from tests.lab.fixtures import skip_or_fail
from tests.lab.install import unavailable
from tests.needs.packages import TMUX
from tests.screen.terminal import Tmux

pytestmark = pytest.mark.real


@pytest.fixture
def screen(voyager):
    skip_or_fail(unavailable(TMUX))
    own = {name: voyager.environment[name] for name in ("RABASKA_HOME", "PATH", "XDG_RUNTIME_DIR")}
    command = f"{sys.executable} -m rabaska watch tiny"
    opened = []

    def open_window():
        opened.append(Tmux(voyager.project, command, environment={**own, "LC_ALL": "C.UTF-8"}))
        return opened[-1]

    yield open_window
    for each in opened:
        each.end()


def test_a_run_on_a_cluster_is_watched_through_a_lost_connection(voyager, screen):
    config = voyager.home / "ssh_config"
    shutil.copy(voyager.lab.ssh_config, config)
    profile = voyager.profile.read_text().replace(str(voyager.lab.ssh_config), str(config))
    voyager.profile.write_text(profile)
    run = voyager.run("--quiet", "--", "--steps", "900", "--pause", "0.2")
    before = len(voyager.lab.login.connections())

    window = screen()
    window.shows(f"{run} on lab  running", "─ loss", "kB/min", seconds=90)
    assert len(voyager.lab.login.connections()) == before

    away = config.rename(voyager.home / "away")
    window.types("u")
    shown = window.shows("could not be made", seconds=60)
    assert "─ loss" in shown
    assert f"{run} on lab  running" in shown

    away.rename(config)
    window.types("u")
    window.hides("could not be made", seconds=60)
    window.shows(f"{run} on lab  running", "B/min")
    window.types("q")
    window.shows("ended 0")
