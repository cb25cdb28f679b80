"""`python -m tests.suite`: runs the tests; what fails runs once more, and is named when it passes.

A failure that a second run does not show is still a mistake, of the program or of the test: each is
named at the end, and in CI the third such name fails the whole run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

# Two workers: the suite is built for two cores, and its jobs take time limits in seconds.
PYTEST = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup"]
LONGEST = ["--durations=40", "--durations-min=8"]  # told at the end: what to make shorter first
FAILED = 1  # pytest's exit code when tests failed; all others mean that it did not run to its end
ALLOWED_IN_CI = 2
NAMES = Path(".pytest_cache/v/cache/lastfailed")


def main(words: list[str]) -> int:
    first = subprocess.run([*PYTEST, "--cache-clear", *LONGEST, *words], check=False).returncode
    if first != FAILED:
        return first
    names = failed_tests(NAMES.read_text()) if NAMES.exists() else []
    if not names:
        return first  # nothing failed by name: something was skipped that may not be
    print(f"\n{len(names)} failed; they run once more\n", flush=True)
    again = subprocess.run([*PYTEST, *names], check=False).returncode
    return again or verdict(names, in_ci=os.environ.get("CI") == "true")


def failed_tests(cache: str) -> list[str]:
    """The tests, and files that could not be read, that pytest noted as failed."""
    return sorted(json.loads(cache))


def verdict(flaky: list[str], *, in_ci: bool) -> int:
    for name in flaky:
        print(f"flaky: {name}")
    too_many = in_ci and len(flaky) > ALLOWED_IN_CI
    if too_many:
        print(f"{len(flaky)} tests passed only in a second run; CI allows {ALLOWED_IN_CI}")
    return FAILED if too_many else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
