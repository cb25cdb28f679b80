"""The whole way on a computer that has `python3` and little else."""

import os
import subprocess
import sys

from tests.bare import bare_path


def test_what_init_writes_runs_where_there_is_only_python3(user, tmp_path):
    (user.project / "rabaska.toml").unlink()
    user.write("train.py", "print('loss', 0.5)\n")
    path = bare_path(tmp_path / "bin", python3=sys.executable)

    def types(*words):
        return subprocess.run(
            [sys.executable, "-m", "rabaska", *words], cwd=user.project, text=True,
            env={**user.environment, "PATH": path}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120,
        )  # fmt: skip

    made = types("init", "--yes")
    assert made.returncode == 0, made.stdout
    written = (user.project / "rabaska.toml").read_text()
    assert '"python train.py' in written
    ran = types("run", "--wait", "--walltime", "1m")

    assert ran.returncode == 0, ran.stdout
    log = types("logs").stdout
    assert "loss 0.5" in log
    assert f"there is no `python` here, so `python` runs {path}{os.sep}python3" in log
