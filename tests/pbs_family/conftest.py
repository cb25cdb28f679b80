"""A laptop with a project, and a real Torque or OpenPBS called `lab` at the other end of ssh.

`BATCH_SYSTEM=torque` or `pbs` says which; without it nothing is collected here. Neither is in
Debian: `make test-torque` and `make test-pbs` boot what somebody has installed.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.lab.batch import NotInstalled
from tests.lab.install import unavailable
from tests.needs.packages import LAB, MPI
from tests.pbs_family.labs import LABS
from tests.real.conftest import Voyager
from tests.voyages.conftest import user

__all__ = ["user"]

SYSTEM = os.environ.get("BATCH_SYSTEM", "")
collect_ignore_glob = [] if SYSTEM in LABS else ["test_*.py"]

PROFILE = """
title = "The batch system"
scheduler = "{scheduler}"

[reach]
host = "lab"
options = ["-F", "{config}"]

[storage]
store = "$SCRATCH/{name}"
"""


@dataclass(frozen=True)
class Passenger(Voyager):
    def cancel_jobs(self):
        found = self.lab.run_as_user(["qselect", "-u", self.lab.user], check=False).stdout.split()
        if found:
            self.lab.run_as_user(["qdel", *found], check=False)


@pytest.fixture(scope="session")
def cluster():
    """The system, booted once for all tests: leave it as you found it."""
    reason = unavailable(LAB | MPI)
    if reason:
        pytest.fail(reason, pytrace=False)
    try:
        running = LABS[SYSTEM]()
    except NotInstalled as problem:
        pytest.exit(str(problem), returncode=1)
    with running:
        yield running


@pytest.fixture
def passenger(cluster, tmp_path, user):
    someone = Passenger(user.project, user.home, cluster, Path(tempfile.mkdtemp()))
    someone.profile.parent.mkdir(parents=True)
    someone.profile.write_text(
        PROFILE.format(scheduler=cluster.scheduler, config=cluster.ssh_config, name=tmp_path.name)
    )
    someone.settings()
    yield someone
    someone.leave()
