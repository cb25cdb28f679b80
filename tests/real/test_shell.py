"""Shells and commands where the program runs: with a terminal, and without one."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]


class Terminal:
    """Somebody at a terminal who reads what appears and types."""

    def __init__(self, user, *words):
        self.screen = ""
        self.keyboard, other_end = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rabaska", *words], cwd=user.project,
            env={**user.environment, "TERM": "xterm"},
            stdin=other_end, stdout=other_end, stderr=other_end, start_new_session=True,
        )  # fmt: skip
        os.close(other_end)

    def sees(self, pattern, seconds=60):
        """Wait for `pattern` to appear and return what it matched."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.screen)):
            assert time.monotonic() < end, f"no {pattern!r} in:\n{self.screen}"
            self._read()
        self.screen = self.screen[found.end() :]
        return found

    def types(self, line):
        os.write(self.keyboard, f"{line}\n".encode())

    def leaves(self, seconds=60):
        """The exit code, once the program has ended."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"still there:\n{self.screen}"
            self._read()
        os.close(self.keyboard)
        return self.process.returncode

    def _read(self):
        if select.select([self.keyboard], [], [], 0.2)[0]:
            try:
                self.screen += os.read(self.keyboard, 65536).decode(errors="replace")
            except OSError:
                time.sleep(0.05)  # the other end is closed; the process is about to end


def test_a_shell_opens_on_a_node_with_everything_in_place(lab, voyager):
    there = Terminal(voyager, "shell", "--on", "lab")

    train = there.sees(r"to train, type: (.*)\r\n")[1]
    there.types("echo on=$(hostname) local=$RABASKA_LOCAL; ls; tty")
    there.sees(r"on=sdumont\d+ local=/lscratch/")
    there.sees(r"train\.py")
    there.sees(r"/dev/pts/\d+")
    there.types(train)
    there.sees(r"accuracy 0\.95")
    there.types("exit 5")

    assert there.leaves() == 5
    assert "what was written is kept in" in there.screen
    lab.wait_until(lambda: not lab.shell("squeue --me --noheader").strip())


def test_words_after_two_dashes_run_in_the_environment_and_give_their_exit_code(lab, voyager):
    lab.shell("/usr/bin/python3 -m venv --without-pip shell-env")
    voyager.add_settings('[environment]\npath = "~/shell-env"\n')
    with voyager.profile.open("a") as profile:
        profile.write('[software]\nmodules = ["python/3.11"]\n')
    asked = "hostname; ls $RABASKA_DATA; echo $EBROOTPYTHON; command -v python; exit 7"

    said = voyager.types("shell", "--on", "lab", "--", "sh", "-c", asked, code=7)

    host, *files, module, python = said.output.split()
    assert host.startswith("sdumont")
    assert files == ["0.txt", "1.txt", "2.txt"]
    assert module == "/opt/site/software/python/3.11"
    assert python == f"{lab.home}/shell-env/bin/python"


def test_a_shell_in_which_nothing_was_written_leaves_nothing_behind(lab, voyager):
    said = voyager.types(
        "shell", "--on", "lab", "--gpus", "1", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $PWD"
    )

    card, code = said.output.split()
    assert card == "0"
    assert list(lab.path(f"{voyager.store}/shells").iterdir()) == []
    nodes = lab.world.run(["ls", os.path.dirname(code)], check=False)
    assert nodes.returncode != 0


def test_an_allocation_that_is_refused_says_why_and_leaves_nothing(lab, voyager):
    said = voyager.types("shell", "--on", "lab", "--walltime", "9h", "--", "true", code=1)

    assert "time limit is invalid" in said.errors
    assert list(lab.path(f"{voyager.store}/shells").iterdir()) == []


def test_a_terminal_that_vanishes_gives_the_allocation_back(lab, voyager):
    there = Terminal(voyager, "shell", "--on", "lab")
    there.sees(r"to train, type")

    os.killpg(there.process.pid, 9)
    os.close(there.keyboard)
    there.process.wait()

    lab.wait_until(lambda: not lab.shell("squeue --me --noheader").strip(), patience=60)


def test_a_command_runs_beside_the_program_in_its_environment(lab, voyager):
    run = voyager.run("--", "--pause", "0.2", "--steps", "100")
    voyager.until(lambda status: status["checkpoint"] is not None)

    said = voyager.types("exec", run, "--", "sh", "-c", "hostname; pwd; echo $RABASKA_JOB; exit 3",
                         code=3)  # fmt: skip

    host, folder, job = said.output.split()
    assert host == voyager.status()["jobs"][0]["host"]
    assert folder.startswith("/lscratch/")
    assert job == "1"
    assert voyager.status()["state"] == "running"


def test_a_command_beside_a_run_has_the_users_terminal(lab, voyager):
    run = voyager.run("--", "--pause", "0.2", "--steps", "100")
    voyager.until(lambda status: status["checkpoint"] is not None)

    beside = Terminal(voyager, "exec", run, "--", "sh", "-c", "tty; read word; echo heard $word")
    beside.sees(r"/dev/pts/\d+")
    beside.types("rapids")

    beside.sees("heard rapids")
    assert beside.leaves() == 0


def test_nothing_runs_beside_a_run_that_is_over(voyager):
    run = voyager.run()
    voyager.types("wait", run)

    said = voyager.types("exec", run, "--", "true", code=2)

    assert "is finished" in said.errors
