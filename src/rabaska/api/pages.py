"""Functions that open a page: tensorboard, jupyter; and a host for editors: code."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rabaska.api.runs import Folder, record_of
from rabaska.journeys import code as _code
from rabaska.journeys import jupyter as _jupyter
from rabaska.journeys import tensorboard as _tensorboard
from rabaska.records.home import made_home
from rabaska.remote.ssh_entries import SshHost
from rabaska.settings.project_file import load
from rabaska.steps.progress import SilentReporter
from rabaska.steps.web_page import Page


def tensorboard(
    runs: Sequence[str] = ("",), *, on: str = "", port: int | None = None
) -> AbstractContextManager[Page]:
    """TensorBoard on this computer over the event files of runs, until the `with` block ends.

    `page.address` is what a browser opens.
    """
    records = [record_of(run, on) for run in runs]
    return _tensorboard.tensorboard(records, made_home(), SilentReporter(), port=port)


@contextmanager
def jupyter(
    folder: Folder = ".",
    *,
    on: str = "here",
    run: str = "",
    new: bool = False,
    port: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Iterator[Page]:
    """JupyterLab in a job, or in that of `run`; it goes on after the `with` block."""
    silent = SilentReporter()
    if run:
        session = _jupyter.next_to(record_of(run), made_home())
    else:
        project = load(Path(folder).absolute(), cluster=on, overrides=overrides or {})
        session = _jupyter.started(project, on, made_home(), silent, new=new)
    with _jupyter.opened(session, made_home(), silent, port=port) as page:
        yield page


def code(run: str = "", *, on: str = "") -> SshHost:
    """The node of a running program as a host for ssh: `ssh -F host.config host.name`."""
    return _code.as_host(record_of(run, on), made_home())
