"""Every file of a run, named in one place.

<store>/packs/<name>-<digest>/   code/<digest>.tar   envs/<digest>/   node/<digest>.pyz
<store>/nodes.json     what a job found out about the nodes, for the laptop
<store>/disks.json     the nodes' own disks, by queue, as jobs found them
<store>/runs/<run>/
  run.json             the resolved plan; `resume` may write it anew, with other requests
  secrets.json         variables that nobody else may see (see `secrets`), while there is work left
  job.sh               what was submitted
  submissions.jsonl    what was submitted, appended by the submitting side only
  answers/             what the scheduler's command answered each, and its process
  events.jsonl         what happened, appended by whoever holds the run
  metrics.jsonl        how fast the program goes, appended by itself (see `metrics`)
  series/job-001.tsv   numbers that the program reported in job 1 (see `series.series_format`)
  series/sources.json, summary.json  how far they were read, and their course (see `job_series`)
  patterns.json        what checkpoints are called beside what run.json says, found after a job
  logs/job-001.log     what the program printed in job 1
  logs/job-001.times   how long that was at which moment (see `log_times`)
  logs/scheduler-<id>.out  what the scheduler caught around it
  jobs/001/begun.json, ended.json, phase.json (see `phases`)
  jobs/001/ranks.jsonl how long each of several processes takes for a step
  carried/001          a symbolic link to what the program writes; renamed from job to job
  kept/001/            what the program writes; renamed after a job that left no word (see `lease`)
    output/  checkpoints/  saved.jsonl (see `saves.saved`)
  bin/                 `python`, where a node has only `python3`
  servers/jupyter.json how a server in the job is reached, while it runs (see `page_server`)
  rsh.sh               how mpirun reaches other nodes, where it does not know the scheduler
  output               a symbolic link to the newest carried output, for people
  DONE                 the run finished
  STOP                 somebody asked the run to stop
  MOVED                the run went on elsewhere: {"run", "cluster", "time"}
  trial.json           the run is a trial of a search, which it names
  INCOMPLETE           the results of an earlier run are still being copied into it
"""

import os
from typing import List, NamedTuple

INCOMPLETE = "INCOMPLETE"
TRIAL = "trial.json"  # the run is a trial of a search: {"search", "trial", "values"}


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
    def disks(self) -> str:
        return os.path.join(self.store, "disks.json")

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
    def moved(self) -> str:
        return os.path.join(self.path, "MOVED")

    @property
    def incomplete(self) -> str:
        return os.path.join(self.path, INCOMPLETE)

    @property
    def output_link(self) -> str:
        return os.path.join(self.path, "output")

    def server(self, kind: str, suffix: str = "json") -> str:
        return os.path.join(self.path, "servers", "{}.{}".format(kind, suffix))

    def log(self, job: int) -> str:
        return os.path.join(self.logs, "job-{:03d}.log".format(job))

    def job(self, job: int) -> str:
        return os.path.join(self.path, "jobs", "{:03d}".format(job))

    def begun(self, job: int) -> str:
        return os.path.join(self.job(job), "begun.json")

    def ended(self, job: int) -> str:
        return os.path.join(self.job(job), "ended.json")

    def phase(self, job: int) -> str:
        return os.path.join(self.job(job), "phase.json")

    def found(self, job: int) -> str:
        return os.path.join(self.job(job), "found.json")

    def failures(self, job: int) -> str:
        return os.path.join(self.job(job), "failures.jsonl")

    def ranks(self, job: int) -> str:
        return os.path.join(self.job(job), "ranks.jsonl")

    def heartbeat(self, job: int) -> str:
        return os.path.join(self.job(job), "heartbeat")

    def claimed(self, job: int) -> str:
        return os.path.join(self.job(job), "claimed")

    def successor(self, job: int) -> str:
        return os.path.join(self.job(job), "successor.json")

    def carried(self, job: int) -> str:
        return os.path.join(self.path, "carried", "{:03d}".format(job))

    def kept(self, number: int) -> str:
        return os.path.join(self.path, "kept", "{:03d}".format(number))

    def place(self, job: int) -> str:
        """Where what the job carries really lies: the path that a program is given."""
        try:
            target = os.readlink(self.carried(job))
        except OSError:  # a folder, as older versions made it; or the run is another job's
            return self.carried(job)
        return os.path.join(self.path, "kept", os.path.basename(target))

    def output(self, job: int) -> str:
        return os.path.join(self.place(job), "output")

    def checkpoints(self, job: int) -> str:
        return os.path.join(self.place(job), "checkpoints")

    def pack(self, identity: str) -> str:
        return os.path.join(self.store, "packs", identity)

    def code(self, digest: str) -> str:
        return os.path.join(self.store, "code", digest + ".tar")

    def jobs(self) -> List[int]:
        """The numbers of the jobs that ever claimed the run, in order."""
        return _numbers(os.path.join(self.path, "jobs"))

    def holder(self) -> int:
        """The number of the job that holds what is carried; 0 before the first claim."""
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
