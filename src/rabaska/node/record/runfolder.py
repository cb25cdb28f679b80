"""Every file of a run, named in one place.

<store>/packs/<name>-<digest>/   code/<digest>.tar   envs/<digest>/   node/<digest>.pyz
<store>/nodes.json     what a link found out about the nodes, for the laptop
<store>/runs/<run>/
  run.json             the resolved plan, written once
  secrets.json         variables that nobody else may see (see `secrets`), while there is work left
  job.sh               what was submitted
  submissions.jsonl    what was submitted, appended by the submitting side only
  answers/             what the scheduler's command answered each, and its process
  events.jsonl         what happened, appended by whoever holds the run
  metrics.jsonl        how fast the program goes, appended by itself (see `metrics`)
  patterns.json        what checkpoints are called beside what run.json says, found after a link
  logs/link-001.log    what the program printed in link 1
  logs/scheduler-<id>.out  what the scheduler caught around it
  links/001/begun.json, ended.json
  carried/001          a symbolic link to what the program writes; renamed from link to link
  kept/001/            what the program writes; renamed after a link that left no word (see `lease`)
    output/  checkpoints/  saved.jsonl (see `saves.saved`)
  bin/                 `python`, where a node has only `python3`
  rsh.sh               how mpirun reaches other nodes, where it does not know the scheduler
  output               a symbolic link to the newest carried output, for people
  DONE                 the run finished
  STOP                 somebody asked the run to stop
"""

import os
from typing import List, NamedTuple


class RunFolder(NamedTuple):
    path: str

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def store(self) -> str:
        return os.path.dirname(os.path.dirname(self.path))

    @property
    def nodes(self) -> str:
        return os.path.join(self.store, "nodes.json")

    @property
    def plan(self) -> str:
        return os.path.join(self.path, "run.json")

    @property
    def secrets(self) -> str:
        return os.path.join(self.path, "secrets.json")

    @property
    def script(self) -> str:
        return os.path.join(self.path, "job.sh")

    @property
    def submissions(self) -> str:
        return os.path.join(self.path, "submissions.jsonl")

    @property
    def answers(self) -> str:
        return os.path.join(self.path, "answers")

    @property
    def events(self) -> str:
        return os.path.join(self.path, "events.jsonl")

    @property
    def metrics(self) -> str:
        return os.path.join(self.path, "metrics.jsonl")

    @property
    def patterns(self) -> str:
        return os.path.join(self.path, "patterns.json")

    @property
    def logs(self) -> str:
        return os.path.join(self.path, "logs")

    @property
    def done(self) -> str:
        return os.path.join(self.path, "DONE")

    @property
    def stop(self) -> str:
        return os.path.join(self.path, "STOP")

    @property
    def output_link(self) -> str:
        return os.path.join(self.path, "output")

    def log(self, link: int) -> str:
        return os.path.join(self.logs, "link-{:03d}.log".format(link))

    def link(self, link: int) -> str:
        return os.path.join(self.path, "links", "{:03d}".format(link))

    def begun(self, link: int) -> str:
        return os.path.join(self.link(link), "begun.json")

    def ended(self, link: int) -> str:
        return os.path.join(self.link(link), "ended.json")

    def found(self, link: int) -> str:
        return os.path.join(self.link(link), "found.json")

    def failures(self, link: int) -> str:
        return os.path.join(self.link(link), "failures.jsonl")

    def heartbeat(self, link: int) -> str:
        return os.path.join(self.link(link), "heartbeat")

    def claimed(self, link: int) -> str:
        return os.path.join(self.link(link), "claimed")

    def successor(self, link: int) -> str:
        return os.path.join(self.link(link), "successor.json")

    def carried(self, link: int) -> str:
        return os.path.join(self.path, "carried", "{:03d}".format(link))

    def kept(self, number: int) -> str:
        return os.path.join(self.path, "kept", "{:03d}".format(number))

    def place(self, link: int) -> str:
        """Where what the link carries really lies: the path that a program is given."""
        try:
            target = os.readlink(self.carried(link))
        except OSError:  # a folder, as older versions made it; or the run is another link's
            return self.carried(link)
        return os.path.join(self.path, "kept", os.path.basename(target))

    def output(self, link: int) -> str:
        return os.path.join(self.place(link), "output")

    def checkpoints(self, link: int) -> str:
        return os.path.join(self.place(link), "checkpoints")

    def pack(self, identity: str) -> str:
        return os.path.join(self.store, "packs", identity)

    def code(self, digest: str) -> str:
        return os.path.join(self.store, "code", digest + ".tar")

    def links(self) -> List[int]:
        """The numbers of the links that ever claimed the run, in order."""
        return _numbers(os.path.join(self.path, "links"))

    def holder(self) -> int:
        """The number of the link that holds what is carried; 0 before the first claim."""
        return max(_numbers(os.path.join(self.path, "carried")), default=0)

    def newest_kept(self) -> int:
        """Of what programs wrote: a stale one may have made its old folder anew."""
        return max(_numbers(os.path.join(self.path, "kept")), default=0)


def _numbers(folder: str) -> List[int]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(int(name) for name in names if name.isdigit())
