"""The connection to a real login node: shared, made again, refused in plain words."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rabaska.errors import Unreachable
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_errors import ConnectionLost
from rabaska.remote.ssh_shell import Shell

pytestmark = pytest.mark.real


@pytest.fixture
def connect(lab, tmp_path, monkeypatch):
    """Makes connections to the lab with a changed ssh_config; they end with the test."""
    sockets = Path(tempfile.mkdtemp(prefix="rc", dir="/tmp"))  # short, as a socket's path must be
    made = []

    def make(*options, host="lab", change=lambda text: text):
        config = tmp_path / f"ssh_config{len(made)}"
        config.write_text(change(lab.ssh_config.read_text()))
        made.append(Connection(host, ("-F", str(config), *options), str(sockets)))
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def test_all_commands_share_one_connection(lab, connect):
    shell = Shell(connect())

    before = len(lab.login.connections())
    shell.run("true")
    after_one = len(lab.login.connections())
    for _ in range(3):
        shell.run("true")

    assert after_one > before
    assert len(lab.login.connections()) == after_one


def test_commands_that_begin_at_once_share_one_connection_too(lab, connect):
    connection = connect()
    before = len(lab.login.connections())

    with ThreadPoolExecutor(6) as users:
        said = list(users.map(lambda _: Shell(connection).run("echo hello").output, range(6)))

    assert said == ["hello\n"] * 6
    connection.close()
    # Nothing is left of it: no second connection that nobody would end.
    lab.wait_until(lambda: len(lab.login.connections()) <= before)


def test_a_script_gets_its_variables_its_input_and_its_exit_code(connect):
    outcome = Shell(connect()).run('echo "$SCRATCH"; cat; echo oops >&2; exit 7', feed=b"fed\n")

    assert (outcome.exit_code, outcome.errors.strip()) == (7, "oops")
    assert re.fullmatch(r"/scratch/proj/alice\nfed\n", outcome.output)


def test_scripts_hold_any_character_and_may_be_long(connect):
    words = "'\"\\$`\n;é" * 40_000

    outcome = Shell(connect()).run(f"cat <<'END' | wc -c\n{words}\nEND")

    assert int(outcome.output) == len(words.encode()) + 1


def test_wishes_for_the_sessions_of_people_do_not_disturb(connect):
    wishes = "  RequestTTY force\n  LocalForward 127.0.0.1:1 x:1\n  ExitOnForwardFailure yes\n"

    shell = Shell(connect(change=lambda text: text + wishes))

    assert b"".join(shell.stream(r"printf '\0\n\377'")) == b"\0\n\xff"
    assert shell.run("tty").output.strip() == "not a tty"


def test_a_lost_connection_is_made_again(lab, connect):
    shell = Shell(connect())
    shell.run("true")

    lab.kill_ssh_connections()

    assert shell.run("echo back").output == "back\n"


def alive(pid):
    asked = ["ps", "-o", "state=", str(pid)]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return told.stdout.strip() not in ("", "Z")


def test_a_socket_whose_master_was_killed_is_no_obstacle(lab, connect):
    connection = connect()
    connection.open()
    asked = [*connection.shell(), "-O", "check", "lab"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stderr
    master = int(re.search(r"pid=(\d+)", told)[1])
    os.kill(master, signal.SIGKILL)
    lab.wait_until(lambda: not alive(master))

    assert Shell(connection).run("echo back").output == "back\n"
    assert connection.is_open()


def test_a_script_that_had_begun_is_never_repeated(lab, connect):
    shell = Shell(connect())
    shell.run("rm -f begun")
    begun = lab.path(f"{lab.home}/begun")

    def cut():
        lab.wait_until(begun.exists)
        lab.kill_ssh_connections()

    cutting = threading.Thread(target=cut)
    cutting.start()
    with pytest.raises(ConnectionLost, match="lost in the middle of a command"):
        shell.run("echo once >> begun; sleep 30")
    cutting.join()
    shell.run("true")

    assert begun.read_text() == "once\n"


INNER = """\
Port 2222
HostKey {home}/inner_key
UsePAM no
PidFile {home}/inner.pid
"""
BEHIND = """
Host inner
  HostName 127.0.0.1
  Port 2222
  ProxyJump lab
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  User alice
  IdentityFile {key}
"""


def test_two_hops_lead_through_a_jump_host(lab, connect):
    lab.path(f"{lab.home}/inner_config").write_text(INNER.format(home=lab.home))
    lab.shell("ssh-keygen -q -t ed25519 -N '' -f inner_key && /usr/sbin/sshd -f ~/inner_config")
    behind = BEHIND.format(key=key_of(lab))

    shell = Shell(connect(host="inner", change=lambda text: text + behind))
    told = shell.run('echo "$SSH_CONNECTION"').output.split()
    shell.run("kill $(cat inner.pid); rm inner*")

    assert told[0] == "127.0.0.1"
    assert told[3] == "2222"


def key_of(lab):
    return re.search(r"IdentityFile\s+(\S+)", lab.ssh_config.read_text())[1]


REFUSALS = {
    "refused": (["-o", "Port=1"], "lab refuses connections"),
    "no such host": (["-o", "HostName=no-such-host.invalid"], "there is no host called lab"),
    "no key": (["-o", "IdentityFile=/dev/null"], "lab asks for a password or a second factor"),
    "unknown key": (
        ["-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes"],
        "the host key of lab is not known yet",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_every_refusal_has_words_of_its_own_and_quotes_ssh(connect, case):
    options, what = REFUSALS[case]

    def options_first(text):
        return text.replace("IdentityFile", "#") if case == "no key" else text

    with pytest.raises(Unreachable) as refused:
        Shell(connect(*options, change=options_first)).run("true")

    assert refused.value.what == what
    assert refused.value.why.startswith("ssh said: ")
    assert refused.value.hint
    assert refused.value.exit_code == 8


def test_a_host_that_falls_silent_is_not_waited_for_for_ever(lab, connect):
    lab.freeze_login()
    try:
        with pytest.raises(Unreachable, match="lab does not answer"):
            Shell(connect("-o", "ConnectTimeout=1")).run("true")
    finally:
        lab.thaw_login()


def test_a_host_key_that_changed_is_refused(lab, connect, tmp_path):
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    key = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{lab.login.port} {key}\nlab {key}\n")
    options = ["-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes"]

    with pytest.raises(Unreachable, match="the host key of lab has changed"):
        Shell(connect(*options)).run("true")


def test_a_site_that_refuses_ends_with_exit_code_8_and_no_traceback(voyager):
    voyager.profile.write_text(
        voyager.profile.read_text().replace('options = ["-F"', 'options = ["-o", "Port=1", "-F"')
    )

    said = voyager.types("run", "--on", "lab", code=8)

    assert "error: lab refuses connections" in said.errors
    assert "because ssh said: " in said.errors


TWICE = """
import sys
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_shell import Shell

shell = Shell(Connection("lab", ("-F", sys.argv[1]), sys.argv[2]))
for word in ("one", "two"):
    print("<" + shell.run("echo " + word).output.strip() + ">", flush=True)
"""


def test_a_prompt_reaches_the_terminal_once(lab, connect, tmp_path):
    locked = tmp_path / "locked"
    key = key_of(lab)
    shutil.copy(key, locked)
    locked.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "s3cret", "-f", str(locked)], check=True)
    connection = connect(change=lambda text: text.replace(key, str(locked)))

    told = on_a_terminal(
        [sys.executable, "-c", TWICE, connection.options[1], str(connection.sockets)],
        answers={"passphrase for key": "s3cret\n"},
    )

    assert told.count("passphrase for key") == 1
    assert "<one>" in told
    assert "<two>" in told
    assert "s3cret" not in told


def on_a_terminal(command, answers):
    """Run a command on a terminal of its own and type answers where it asks; all it showed."""
    environment = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, environment)
    shown, unanswered, end = "", dict(answers), time.monotonic() + 30
    while time.monotonic() < end and select.select([terminal], [], [], 30)[0]:
        try:
            shown += os.read(terminal, 4096).decode()
        except OSError:  # the other end of the terminal was closed
            break
        for question in [each for each in unanswered if each in shown]:
            os.write(terminal, unanswered.pop(question).encode())
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown


def test_ctrl_c_while_connecting_ends_at_once_and_leaves_no_ssh(lab, voyager):
    lab.freeze_login()
    try:
        process = voyager.start("run", "--on", "lab", start_new_session=True)
        lab.wait_until(lambda: "ssh" in names_in_session(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        lab.thaw_login()

    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "ssh" not in names_in_session(process.pid)


def names_in_session(session):
    told = subprocess.run(
        ["ps", "-o", "comm=", "-s", str(session)], capture_output=True, text=True, check=False
    )
    return told.stdout.split()


def test_connections_are_kept_where_nobody_else_can_use_them(lab, voyager):
    folder = voyager.sockets / f"rabaska-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o755)

    voyager.types("clusters", "check", "lab")

    assert oct(folder.stat().st_mode & 0o777) == "0o700"


@pytest.mark.slow
def test_a_log_that_is_followed_goes_on_after_a_cut(lab, voyager):
    run = voyager.run("--", "--steps", "60", "--pause", "0.1")
    following = voyager.start("logs", "-f", run)
    seen = ""
    while "step 5 " not in seen:
        seen += following.stdout.readline()

    lab.kill_ssh_connections()
    rest = following.stdout.read()
    following.communicate(timeout=60)

    assert following.returncode == 0
    assert re.findall(r"step (\d+) ", seen + rest) == [str(step) for step in range(1, 61)]
