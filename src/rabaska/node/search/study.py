"""The folder of a search: its settings, its trials and their results.

<store>/searches/<name>/
  study.json            settings, and the plan that each trial's run is made of; never changed
  more/<mark>.json      trials that were added later; who did not hear the answer says it again
  STOP                  somebody asked the search to stop
  job.sh  job-more.sh   what was submitted, and one more of it
  trial-job.sh          the script of a trial's run, should it be resumed by itself
  submitted/<name>/     submissions.jsonl and answers/ of one submission, as in a run folder
  logs/  secrets.json   as in a run folder
  trials/0000/          numbers up to 99; the next hundred are in 0001
    000017.json         trial 17: its values, and who began it
    000017.try-2.json   who took it over
    000017.left-1       the first worker left it unfinished, by itself
    000017.reports.json values of the metric so far, for early stopping
    000017.result.json  how it ended
    all.json            all of these trials, once each has a result
    thinned             what need not be kept of their runs was removed

Each file is written once, by `link`, which a file server decides; only `reports` is replaced, by
the one worker that has the trial. What cannot be read is as good as not there.
"""

import os
import socket
from typing import Any, Dict, List, NamedTuple, Optional

from .. import files, processes
from ..record.run_folder import RunFolder
from . import space as spaces

BLOCK = 100
ROUNDS = 30  # workers that one place among `at_once` may have, one after another
FINISHED, PRUNED, FAILED = "finished", "stopped early", "failed"


class Study(NamedTuple):
    path: str

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def store(self) -> str:
        return os.path.dirname(os.path.dirname(self.path))

    @property
    def settings(self) -> str:
        return os.path.join(self.path, "study.json")

    @property
    def stop(self) -> str:
        return os.path.join(self.path, "STOP")

    @property
    def more(self) -> str:
        return os.path.join(self.path, "more")

    @property
    def trials(self) -> str:
        return os.path.join(self.path, "trials")

    @property
    def submitted(self) -> str:
        return os.path.join(self.path, "submitted")

    def submissions(self) -> List[str]:
        """The folders of what was submitted."""
        return [os.path.join(self.submitted, name) for name in _names(self.submitted)]

    def block(self, number: int) -> str:
        return os.path.join(self.trials, "{:04d}".format(number // BLOCK))

    def file(self, number: int, what: str = "") -> str:
        return os.path.join(self.block(number), "{:06d}{}".format(number, what))

    def run(self, number: int) -> RunFolder:
        """The run that is trial `number`."""
        return RunFolder(os.path.join(self.store, "runs", run_name(self.name, number)))


def run_name(study: str, number: int) -> str:
    return "{}-t{}".format(study, number)


class Settings(NamedTuple):
    """What study.json says."""

    space: List[spaces.Parameter]
    given: files.Json  # the space as rabaska.toml spelled it
    metric: str
    goal: str  # "max" or "min"
    trials: int
    method: str
    stopping: str
    seed: int
    at_once: int
    take: str  # "last" or "best": which value of a trial counts
    first_report: int  # before which nothing is stopped early
    reduction: int
    keep_best: int  # trials whose results are kept in full
    keep_others: str  # what is kept of the others
    spelled: Dict[str, List[str]]  # how each value reaches the program: style, and its word
    plan: files.Json  # of each trial's run
    growth: files.Json  # how one more worker is submitted
    workers: files.Json  # how all of them were, for the laptop
    seeds: List[int] = []  # with which the best trials are repeated
    seed_name: str = ""  # the parameter that a seed is given as
    repeat_best: int = 3  # trials that are repeated
    base: str = ""  # the name of the file that values are written into, where there is one

    @property
    def better(self) -> int:
        return 1 if self.goal == "max" else -1


def load(study: Study) -> Settings:
    """ValueError or KeyError where it cannot be read."""
    value = files.read_json(study.settings)
    if value is None:
        raise ValueError("{} does not exist".format(study.settings))
    # What a search of an earlier version did not have yet is as if it were left out.
    known = [
        name for name in Settings._fields if name in value or name not in Settings._field_defaults
    ]
    fields = {name: value[name] for name in known if name != "space"}
    return Settings(space=spaces.parameters(value["given"]), **fields)


def total(study: Study, settings: Settings) -> int:
    """How many trials there shall be, with those that were added."""
    added = 0
    for name in _names(study.more):
        try:
            added += int((files.read_json(os.path.join(study.more, name)) or {}).get("trials", 0))
        except (OSError, ValueError, TypeError):
            continue
    return settings.trials + added


def add_trials(study: Study, count: int, now: float, mark: str) -> None:
    """Once for each mark: the question is asked again where a connection broke."""
    os.makedirs(study.more, exist_ok=True)
    publish(os.path.join(study.more, mark + ".json"), {"trials": count, "time": now})


class Trial(NamedTuple):
    number: int
    values: Dict[str, Any]
    begun: float
    owner: files.Json  # of its newest try: host, boot, pid, started
    tries: int = 1
    left: bool = False  # by that owner, by itself
    repeats: int = 0  # the trial that it repeats with another seed, or 0
    result: Optional[files.Json] = None  # state, value, why, seconds, …
    reports: List[float] = []  # of the metric, for early stopping


def myself(now: float) -> files.Json:
    pid = os.getpid()
    return {
        "host": socket.gethostname(),
        "boot": processes.boot_id(),
        "pid": pid,
        "started": processes.start_id(pid),
        "time": now,
    }


def is_alive(owner: files.Json) -> Optional[bool]:
    """Whether that process lives; None when that cannot be told from here."""
    if owner.get("host") != socket.gethostname() or owner.get("boot") != processes.boot_id():
        return None
    pid, started = owner.get("pid"), owner.get("started")
    if not isinstance(pid, int) or not isinstance(started, str):
        return False
    return processes.is_alive(pid, started)


def publish(path: str, value: files.Json) -> bool:
    """Write a file that is there complete and never changes; False if there is one already."""
    return publish_text(path, files.to_json(value) + "\n")


def publish_text(path: str, text: str) -> bool:
    partial = files.partial_name("{}.{}".format(path, socket.gethostname()))
    try:
        with files.create(partial) as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())
        return _linked(partial, path)
    finally:
        files.remove_if_there(partial)


def _linked(partial: str, path: str) -> bool:
    try:
        os.link(partial, path)
    except FileExistsError:
        # NFS may have done it, and lost the answer: then the file has two names.
        return os.stat(partial).st_nlink == 2 and os.path.samefile(partial, path)
    except OSError:
        if os.path.exists(path):
            return False
        # A file system without hard links: made exclusively, and then filled.
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except FileExistsError:
            return False
        os.replace(partial, path)
    return True


def _names(folder: str) -> List[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.endswith(files.PARTIAL))
    except FileNotFoundError:
        return []
