"""What holds for every test: none is counted that did not run."""

import os
import signal
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from tests.needs import apptainer, pythons

from rabaska.node import native

TESTS = Path(__file__).parent
NOBODY = 65534

# How long an example takes says more of the computer than of us.
settings.register_profile("any computer", deadline=None)
settings.load_profile("any computer")


def pytest_configure():
    """Tests press Ctrl-C; what was started in a shell's background would not hear it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--at-least",
        type=int,
        default=0,
        metavar="N",
        help="fail when fewer than N tests passed, or when any was skipped",
    )
    parser.addoption("--thorough", action="store_true", help="run the tests of that mark, too")


# Whole programs run there, with time limits of seconds: together they take minutes.
LONG = (
    "here", "examples", "advice/test_storage_and_clean.py", "environments/test_recipes.py",
    "environments/test_wheels_found.py", "environments/test_without_pip.py", "node/here",
    "node/job/test_agent.py", "node/test_every_python.py", "node/job/test_launch_forms.py",
    "node/job/test_program_environment.py", "node/login/test_submit_job.py",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """What boots a cluster or waits for programs is no part of `make check`."""
    if not apptainer.is_here():  # only Debian's newest packages have it, and not every mirror
        items[:] = [item for item in items if not item.get_closest_marker("apptainer")]
    if not config.getoption("--thorough"):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    for item in items:
        place = item.path.relative_to(TESTS).as_posix()
        if item.get_closest_marker("real") or place.startswith(LONG):
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter, config):
    """What was not tested here, in one line at the end; too few tests are a failure, too."""
    wanted = config.getoption("--at-least")
    passed = len(terminalreporter.stats.get("passed", []))
    skipped = len(terminalreporter.stats.get("skipped", []))
    if wanted and (passed < wanted or skipped):
        terminalreporter.write_line(f"{passed} passed, {skipped} skipped: fewer than {wanted}")
    absent = [f"Python {', '.join(pythons.absent())}"] if pythons.absent() else []
    absent += [] if apptainer.is_here() else ["Apptainer, for containers"]
    line = not_tested(terminalreporter.stats.get("skipped", []), absent)
    if line:
        terminalreporter.write_line(line)


def not_tested(skipped, absent):
    """One line for all that this computer could not test, and why; empty when it tested all."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    parts = [f"{count} x {reason}" for reason, count in sorted(reasons.items())]
    parts += [f"{program}: not on this computer" for program in absent]
    return f"not tested here: {'; '.join(parts)}" if parts else ""


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    wanted = session.config.getoption("--at-least")
    passed, skipped = (len(reporter.stats.get(how, [])) for how in ("passed", "skipped"))
    # Nobody reads what was skipped in CI; only Pythons and Apptainer may be missing there.
    too_many = skipped and (wanted or os.environ.get("CI") == "true")
    if exitstatus == 0 and (passed < wanted or too_many):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def ordinary_folder():
    """A folder of an ordinary user, which the test is meanwhile: root may read everything."""
    was_root = os.geteuid() == 0
    "".encode("cp437")  # which zipfile loads when it needs it, from folders closed to that user
    if was_root:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    finally:
        if was_root:
            os.seteuid(0)
            os.setegid(0)


@pytest.fixture(scope="session")
def compiled():
    """What is compiled, which every installation has."""
    assert native.compiled is not None, "the library was not made, or cannot be loaded"
    return native.compiled
