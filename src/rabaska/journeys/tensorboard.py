"""TensorBoard: on this computer, over event files that keep coming while the runs go on."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rabaska.errors import RabaskaError, Unreachable
from rabaska.node.job.page_server import TENSORBOARD
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remembered
from rabaska.remote import web_programs
from rabaska.remote.event_files import bring_grown
from rabaska.remote.local_disk import remove
from rabaska.remote.ssh_errors import ConnectionLost
from rabaska.remote.web_gate import unix_connect
from rabaska.steps.connect import ConnectedCluster, connect_for, node_program
from rabaska.steps.job_server import ask_for, job_at_work, relayed
from rabaska.steps.progress import Reporter
from rabaska.steps.run_identity import confirm
from rabaska.steps.web_page import Page, served_page

USUAL_PORT = 6006
_OFTEN, _SELDOM = 3.0, 60.0  # seconds between two looks, when something comes and when nothing does


@contextmanager
def tensorboard(
    records: Sequence[RunRecord], home: Home, reporter: Reporter, *, port: int | None = None
) -> Iterator[Page]:
    """Serve the event files of these runs, which keep coming until the block ends."""
    project = records[0].project
    python = web_programs.python_with_tensorboard(Path(project) if project else None)
    copies = EventCopies(records, home, reporter)
    copies.bring()
    if not copies.any():
        reporter.warn("no event files yet; they are shown as soon as a run writes some")
    program = node_program(home.store / "node")
    with web_programs.private_folder() as folder:
        logs = folder / "runs"
        logs.mkdir()
        for record in records:
            (logs / record.name).symlink_to(copies.folder(record))
        with (
            web_programs.tensorboard(python, program, folder, logs) as path,
            served_page(unix_connect(path), folder, port, USUAL_PORT) as page,
            copies.followed(),
        ):
            yield page


@contextmanager
def tensorboard_there(record: RunRecord, home: Home, *, port: int | None = None) -> Iterator[Page]:
    """TensorBoard in the job of a running program; its page, until the block ends."""
    job = job_at_work(record, home)
    ask_for(TENSORBOARD, record, home)
    with relayed(record, job, TENSORBOARD, home) as stream, web_programs.private_folder() as folder:
        stream.hello()
        with served_page(stream.connect, folder, port, USUAL_PORT) as page:
            yield page


class EventCopies:
    """Copies of runs' event files on this computer, one question to each cluster at a time."""

    def __init__(self, records: Sequence[RunRecord], home: Home, reporter: Reporter) -> None:
        self._records, self._home, self._reporter = records, home, reporter
        self._clusters: dict[str, ConnectedCluster] = {}
        self._lost: set[str] = set()
        self._forget_old()

    def folder(self, record: RunRecord) -> Path:
        return self._home.folder / "events" / (record.id or record.name)

    def any(self) -> bool:
        return any(
            path.is_file() for record in self._records for path in self.folder(record).rglob("*")
        )

    def bring(self) -> int:
        """Copy what is new; how many bytes. A cluster that does not answer is tried again later."""
        came = 0
        for name in dict.fromkeys(record.cluster for record in self._records):
            records = [record for record in self._records if record.cluster == name]
            try:
                came += self._bring_from(name, records)
                if name in self._lost:
                    self._reporter.step(f"{name} answers again")
                self._lost.discard(name)
            except (Unreachable, ConnectionLost) as problem:
                if name not in self._lost:
                    self._reporter.warn(f"{problem.what}; shown is what came before")
                self._lost.add(name)
        return came

    def _bring_from(self, name: str, records: Sequence[RunRecord]) -> int:
        for record in records:
            self.folder(record).mkdir(mode=0o700, parents=True, exist_ok=True)
        if name not in self._clusters:
            cluster = connect_for(records[0], self._home)
            for record in records:
                confirm(record, cluster)
            cluster.run("true")  # which sends our program where it is missing
            self._clusters[name] = cluster
        cluster = self._clusters[name]
        copies = {record.path: self.folder(record) for record in records}
        return bring_grown(cluster.place, cluster, copies)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Meanwhile, what is new is copied, in a thread."""
        over = threading.Event()
        following = threading.Thread(target=self._follow, args=(over,), daemon=True)
        following.start()
        try:
            yield
        finally:
            over.set()

    def _follow(self, over: threading.Event) -> None:
        pause, complained = _OFTEN, ""
        while not over.wait(pause):
            try:
                pause = _OFTEN if self.bring() else min(pause * 1.5, _SELDOM)
            except RabaskaError as problem:
                if problem.what != complained:
                    self._reporter.warn(str(problem))
                pause, complained = _SELDOM, problem.what

    def _forget_old(self) -> None:
        """Remove the copies of runs that are not in the list any more."""
        known = {self.folder(record).name for record in remembered(self._home.runs)}
        place = self._home.folder / "events"
        for folder in place.iterdir() if place.is_dir() else ():
            if folder.name not in known:
                remove(folder)
