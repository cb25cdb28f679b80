"""Programs of this computer that a person looks at in a browser: TensorBoard, and the browser."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rabaska.errors import CommandFailed, MissingProgram
from rabaska.node import private_files
from rabaska.remote import programs

if TYPE_CHECKING:
    from subprocess import Popen

_FOUND = "import importlib.util as u, sys; sys.exit(u.find_spec('tensorboard') is None)"
_STARTING = 60  # seconds: `uv` may have to download it


def python_with_tensorboard(project: Path | None) -> list[str]:
    """The words that start a Python that has it: this one, the project's, or uv's."""
    for python in _pythons(project):
        if programs.run([python, "-c", _FOUND], capture_output=True).returncode == 0:
            return [python]
    if programs.is_there("uv"):
        return ["uv", "run", "--quiet", "--no-project", "--with", "tensorboard", "python"]
    own = "pip" if sys.prefix == sys.base_prefix else f"{sys.executable} -m pip"
    raise MissingProgram(
        "this computer has no TensorBoard",
        why="it is neither in the Python of rabaska, nor in the active environment, nor in the "
        "project's .venv, and there is no `uv` to fetch it",
        hint=f"`{own} install tensorboard`, and try again",
    )


def _pythons(project: Path | None) -> Iterator[str]:
    """Each that exists, once; the project's own comes after ours."""
    active = [os.environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    folders = [Path(folder) for folder in active if folder]
    folders += [project / name for name in (".venv", "venv", "env")] if project else []
    found = [sys.executable]
    found += [str(folder / "bin" / "python") for folder in folders]
    found += [path for path in (_on_path("python3"), _on_path("python")) if path]
    return (python for python in dict.fromkeys(found) if os.access(python, os.X_OK))


def _on_path(name: str) -> str:
    import shutil

    return shutil.which(name) or ""


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder of ours alone, with a short name for sockets, that is removed afterwards."""
    import shutil

    from rabaska.remote.ssh_connection import private_socket_folder

    folder = Path(private_files.new_folder(private_socket_folder(), prefix="w"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def tensorboard(python: Sequence[str], program: Path, folder: Path, logs: Path) -> Iterator[str]:
    """TensorBoard over `logs`, until the block ends: the path of its socket."""
    from subprocess import DEVNULL, PIPE

    path = folder / "s"
    words = [*python, str(program), "tensorboard", str(path), "--logdir", str(logs)]
    with (folder / "log").open("wb") as log:
        process = programs.started(
            words, stdin=PIPE, stdout=DEVNULL, stderr=log, start_new_session=True
        )
    try:
        _wait_for(path, process, folder / "log")
        yield str(path)
    finally:
        process.terminate()
        process.wait()


def _wait_for(path: Path, process: "Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + _STARTING
    while not path.exists():
        if process.poll() is not None or time.monotonic() > end:
            said = log.read_text(errors="replace").strip().splitlines()
            raise CommandFailed(
                "TensorBoard did not start",
                why=said[-1] if said else f"it ended with exit code {process.poll()}",
                hint="`tensorboard --version` must work first",
            )
        time.sleep(0.05)


def open_browser(address: str, folder: Path) -> bool:
    """Open a page there; its token stands in a file of ours and on no command line."""
    import html
    import webbrowser

    file = folder / "open.html"
    file.touch(0o600)
    link = html.escape(address)
    file.write_text(f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">open</a>')
    try:
        return bool(os.environ.get("DISPLAY") or _has_own_display()) and webbrowser.open(
            file.as_uri()
        )
    except webbrowser.Error:
        return False


def _has_own_display() -> bool:
    return sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER")
    )
