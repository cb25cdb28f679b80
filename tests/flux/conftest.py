"""A user of a real Flux: four brokers on this computer, started by whoever runs the tests.

Root has the system's user `nobody` do it. `BATCH_SYSTEM=flux` asks for them; without it nothing is
collected here. Debian has no Flux: `make test-flux` starts one that somebody has installed.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.voyages.conftest import TRAIN, User

import rabaska

FLUX = shutil.which("flux") or shutil.which("flux", path="/opt/flux/bin")
collect_ignore_glob = [] if os.environ.get("BATCH_SYSTEM") == "flux" else ["test_*.py"]

PROFILE = """
title = "The lab"
scheduler = "flux"
"""
COMMAND = '"python3 train.py --data {data} --output {output} --resume {checkpoint}"'
BROKERS = 4
MODULES = os.pathsep.join([str(Path(rabaska.__file__).parents[1]), sysconfig.get_path("purelib")])
_PATIENCE = 90.0  # seconds for four brokers to find each other


@dataclass(frozen=True)
class FluxUser(User):
    socket: str
    words: tuple[str, ...]  # what stands before a command to run it as an ordinary user
    python: str  # that this user can run

    @property
    def environment(self):
        path = f"{Path(self.python).parent}:{Path(FLUX).parent}:/usr/bin:/bin"
        own = {"HOME": str(self.home), "RABASKA_HOME": str(self.home / "rabaska"), "NO_COLOR": "1"}
        if self.python != sys.executable:
            own["PYTHONPATH"] = MODULES
        return {**own, "PATH": path, "LANG": "C.UTF-8", "FLUX_URI": self.socket}

    def start(self, *words, **options):
        return subprocess.Popen(
            [*self.words, self.python, "-m", "rabaska", *words], cwd=self.project,
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **options,
        )  # fmt: skip

    def flux(self, *words):
        """What a command of Flux itself prints."""
        return subprocess.run(
            [*self.words, FLUX, *words], cwd=self.project, env=self.environment, check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60,
        ).stdout  # fmt: skip

    def run(self, *words):
        return self.types("run", "--on", "lab", *words).output.strip()

    def unfinished(self):
        return self.flux("jobs", "--no-header", "--format={id.dec}").split()


@pytest.fixture(scope="session")
def ordinary():
    """Words that run a command as an ordinary user, and a folder of that user."""
    if not FLUX:
        pytest.exit("Flux is not installed: no `flux` on PATH, nor in /opt/flux/bin", returncode=1)
    folder = Path(tempfile.mkdtemp(prefix="flux-"))
    words = ()
    if os.geteuid() == 0:
        words = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
        shutil.chown(folder, "nobody", "nogroup")
    yield words, folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def instance(ordinary):
    """The address of a Flux with four brokers."""
    words, folder = ordinary
    start = [*words, FLUX, "start", f"--test-size={BROKERS}", f"--test-rundir={folder}"]
    path = f"{Path(FLUX).parent}:/usr/bin:/bin"
    environment = {"HOME": str(folder), "PATH": path, "LANG": "C.UTF-8"}
    process = subprocess.Popen([*start, "sleep", "inf"], env=environment, cwd=folder)
    address = f"local://{folder}/local-0"
    environment["FLUX_URI"] = address
    ask = [*words, FLUX, "resource", "list", "--states=free", "-no", "{nnodes}"]
    try:
        give_up = time.monotonic() + _PATIENCE
        while _said(ask, environment) != str(BROKERS):
            assert time.monotonic() < give_up
            assert process.poll() is None
            time.sleep(0.5)
        yield address
    finally:
        subprocess.run([*words, FLUX, "shutdown", "--quiet"], env=environment, check=False)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(words, environment):
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def python(ordinary):
    """Our own, or the system's of the same version where an ordinary user cannot run ours."""
    words, _ = ordinary
    version = f"python3.{sys.version_info.minor}"
    for each in (sys.executable, f"/usr/bin/{version}"):
        asked = [*words, "sh", "-c", '"$0" -c "import pydantic"', each]
        environment = {"PYTHONPATH": MODULES, "PATH": "/usr/bin:/bin"}
        done = subprocess.run(asked, env=environment, capture_output=True, check=False)
        if done.returncode == 0:
            return each
    pytest.skip(f"an ordinary user can run neither {sys.executable} nor /usr/bin/{version}")


@pytest.fixture
def user(ordinary, instance, python):
    words, folder = ordinary
    own = Path(tempfile.mkdtemp(dir=folder))
    project = own / "project"
    (project / "numbers").mkdir(parents=True)
    for number in range(3):
        (project / "numbers" / f"{number}.txt").write_text(str(number))
    someone = FluxUser(project, own / "home", instance, words, python)
    profiles = someone.home / "rabaska" / "clusters"
    profiles.mkdir(parents=True, mode=0o700)
    (profiles / "lab.toml").write_text(PROFILE)
    someone.write("train.py", TRAIN)
    someone.settings(command=COMMAND, walltime='"2m"')
    if words:
        for path in (own, *own.rglob("*")):
            shutil.chown(path, "nobody", "nogroup")
    (someone.home / "rabaska").chmod(0o700)
    yield someone
    someone.flux("cancel", "--all", "--quiet")
