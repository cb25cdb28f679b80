"""A key on its way to the program: nobody is shown it, and nothing of it is left behind."""

import json
import os
import stat
import subprocess
import sys

import pytest

KEY = "4f7c0ffee9911d5e"

PRINTS_LENGTH = """
import os, sys, time
print("length", len(os.environ["WANDB_API_KEY"]), len(os.environ.get("HF_TOKEN", "")))
sys.exit(int(sys.argv[1]))
"""


def everywhere(folder, key=KEY):
    """The files below `folder` that hold the key."""
    found = subprocess.run(
        ["grep", "-rlaF", key, str(folder)], capture_output=True, text=True, check=False
    )
    return [os.path.relpath(path, folder) for path in found.stdout.splitlines()]


@pytest.fixture
def trainer(user):
    user.write("train.py", PRINTS_LENGTH)
    user.write("rabaska.toml", 'command = "python train.py 0"\n[environment]\n'
               'secrets = ["WANDB_API_KEY"]\n[chain]\njobs = 1\n')  # fmt: skip
    return user


def with_key(user, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    return user


def test_a_secret_reaches_the_program_and_no_file_or_screen(trainer, monkeypatch):
    with_key(trainer, monkeypatch)

    said = [trainer.types("run", "--dry-run"), trainer.types("run", "--dry-run", "--json")]
    said += [trainer.types("run"), trainer.types("wait"), trainer.types("logs")]
    said += [trainer.types(word, *how) for word in ("show", "status") for how in ((), ("--json",))]
    trainer.types("fetch")

    assert "length 16 0" in said[4].output
    assert not any(KEY in each.output + each.errors for each in said)
    assert "WANDB_API_KEY" in said[0].output
    assert everywhere(trainer.home) == []
    assert everywhere(trainer.project) == []


def test_while_there_is_work_left_it_lies_in_a_file_for_its_user_alone(trainer, monkeypatch):
    with_key(trainer, monkeypatch)
    trainer.write("rabaska.toml", (trainer.project / "rabaska.toml").read_text().replace("0", "1"))

    run = trainer.types("run").output.strip()
    trainer.types("wait", code=1)
    trainer.types("fetch")

    kept = f"store/runs/{run}/secrets.json"
    assert everywhere(trainer.home) == [kept]
    assert stat.S_IMODE((trainer.home / kept).stat().st_mode) == 0o600
    assert everywhere(trainer.project) == []

    monkeypatch.delenv("WANDB_API_KEY")
    trainer.types("resume", run)
    trainer.types("wait", code=1)
    assert trainer.types("logs").output.count("length 16 0") == 2

    trainer.types("forget", run, "--secrets")
    assert everywhere(trainer.home) == []


def test_a_secret_without_a_value_is_named_before_anything_is_done(trainer):
    said = trainer.types("run", code=3)

    assert "no value for the secret WANDB_API_KEY" in said.errors
    assert "export WANDB_API_KEY=…" in said.errors
    assert not (trainer.home / "runs").exists()


def test_a_variable_that_looks_like_a_secret_is_treated_as_one_and_that_is_said(user):
    user.write("train.py", PRINTS_LENGTH)
    user.write("rabaska.toml", 'command = "python train.py 0"\n[environment.variables]\n'
               f'WANDB_API_KEY = "{KEY}"\nHF_HOME = "/cache"\n')  # fmt: skip

    said = [user.types("run"), user.types("wait"), user.types("show", "--json")]

    assert "WANDB_API_KEY in `variables` looks like a secret" in said[0].errors
    assert not any(KEY in each.output + each.errors for each in said)
    assert json.loads(said[2].output)["plan"]["variables"] == {"HF_HOME": "/cache"}
    assert everywhere(user.home) == []  # rabaska.toml is in the snapshot, without the value


def test_secrets_come_from_a_file_that_nobody_else_can_read(user):
    user.write("train.py", PRINTS_LENGTH)
    user.write("rabaska.toml", 'command = "python train.py 0"\n[environment]\n'
               'secrets_from = ".env"\n')  # fmt: skip
    user.write(".env", f"WANDB_API_KEY={KEY}\nHF_TOKEN=abc\n")
    (user.project / ".env").chmod(0o644)

    refused = user.types("run", code=3)
    (user.project / ".env").chmod(0o600)
    user.types("run")
    user.types("wait")

    assert "are open to others" in refused.errors
    assert "length 16 3" in user.types("logs").output
    assert everywhere(user.home) == []


def test_files_that_may_hold_secrets_stay_behind_and_are_named(user):
    user.settings(command='"python train.py"')
    user.write("train.py", "import os; print(sorted(os.listdir('.')))")
    user.write(".env", f"KEY={KEY}")
    user.write("kaggle.json", "{}")
    user.write("key.pem", "-----BEGIN OPENSSH PRIVATE KEY-----\n")
    user.write("public.pem", "-----BEGIN CERTIFICATE-----\n")

    said = user.types("run")
    user.types("wait")

    assert "not sent, for it may hold secrets: .env, kaggle.json, key.pem" in said.errors
    assert "['public.pem', 'rabaska.toml', 'train.py']" in user.types("logs").output
    assert everywhere(user.home) == []


def test_a_file_that_is_asked_for_is_sent_closed_to_others(user):
    user.settings(command='"python train.py"')
    look = "import os; print(oct(os.stat('.env').st_mode), oct(os.stat('train.py').st_mode))"
    user.write("train.py", look)
    user.write(".env", f"KEY={KEY}")
    user.write("rabaska.toml", (user.project / "rabaska.toml").read_text()
               + '\n[code]\ninclude = [".env"]\n')  # fmt: skip

    said = user.types("run")
    user.types("wait")

    assert "may hold secrets" not in said.errors
    assert "0o100600 0o100600" in user.types("logs").output


def test_no_secret_stands_on_a_command_line(trainer, monkeypatch):
    """Every process that `run` starts is seen by everybody; each writes its words down."""
    with_key(trainer, monkeypatch)
    words = trainer.home.parent / "words"
    watched = f"strace -f -s 100000 -e trace=execve -o {words} {sys.executable} -m rabaska run"
    if subprocess.run(["which", "strace"], capture_output=True, check=False).returncode:
        pytest.skip("there is no strace")

    subprocess.run(
        ["bash", "-c", watched], cwd=trainer.project, env=trainer.environment, check=True
    )
    trainer.types("wait")

    # Only the arguments: strace shows the environment as an address.
    assert "execve" in words.read_text()
    assert KEY not in words.read_text()


def test_settings_that_hold_a_secret_twice_stay_behind_and_that_is_said(user):
    user.write("train.py", PRINTS_LENGTH)
    user.write("rabaska.toml", f'command = "python train.py 0"\nname = "k{KEY}"\n'
               f'[environment.variables]\nWANDB_API_KEY = "{KEY}"\n')  # fmt: skip

    said = user.types("run")
    user.types("wait")

    assert "rabaska.toml is not sent with the code" in said.errors
    assert [path for path in (user.home / "store" / "code").iterdir()
            if KEY.encode() in path.read_bytes()] == []  # fmt: skip


def test_cancel_says_that_secrets_stay_and_what_deletes_them(trainer, monkeypatch):
    with_key(trainer, monkeypatch)
    settings = (trainer.project / "rabaska.toml").read_text().replace("py 0", "py 85")
    trainer.write("rabaska.toml", settings)
    run = trainer.types("run").output.strip()
    trainer.types("wait", code=10)

    said = trainer.types("cancel").errors

    assert f"`rabaska forget {run} --secrets`" in said
    trainer.types("forget", run, "--secrets")
    assert everywhere(trainer.home) == []
