"""Writes the recordings beside this file anew: `python tests/recordings/pbs/record.py`, as root.

It needs an installed OpenPBS (see `tests/lab/pbs.py`).
"""

import datetime
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from tests.lab.pbs import Pbs  # noqa: E402

from rabaska.domain.jobs import JobId  # noqa: E402
from rabaska.schedulers.pbs import Pbs as Words  # noqa: E402

WORDS = Words()
LONG = "sleep 300"
# Each job by its options and what it does; numbers are given in this order, from 0.
JOBS = (
    ("", "true"),
    ("", "exit 3"),
    ("-l walltime=00:00:03", LONG),
    ("", LONG),  # deleted
    ("", LONG),  # deleted by force
    ("", "kill -9 $$"),
    ("", "kill -9 $PPID"),  # the shell that runs it
    ("", LONG),
    ("-W depend=afterany:7", LONG),  # deleted, and with it the next
    ("-W depend=afterany:8", LONG),
    ("-W depend=afterany:7", LONG),
    ("-W depend=afterany:7", LONG),  # held by its user
    ("", LONG),  # suspended
    ("-l select=1:ncpus=9", LONG),
    ("-W depend=afterany:99999", LONG),
    ("-q still", LONG),
)
REFUSED = (
    ["-l", "walltime=1000:00:00"], ["-l", "select=1:ncpus=1:nfoo=1"], ["-l", "foo=1"],
    ["-q", "nosuch"], ["-l", "walltime=1-00:00:00"], ["-W", "group_list=nosuch"],
    ["-l", "nodes=1:ppn=1:gpus=1"],
)  # fmt: skip


def main() -> None:
    with Pbs() as cluster:
        for line in (
            "create queue still queue_type=Execution, enabled=True, started=False",
            "set queue workq resources_max.walltime = 100:00:00",
        ):
            cluster.tell(line)
        submitted = [submit(cluster, *job) for job in JOBS]
        time.sleep(6)
        cluster.run_as_user(["qdel", "3"])
        cluster.run_as_user(["qdel", "-W", "force", "4"])
        cluster.run_as_user(["qdel", "8"])
        cluster.run_as_user(["qhold", "11"])
        cluster.admin("qsig", "-s", "suspend", "12")
        time.sleep(16)
        jobs = [JobId(f"{number}.control") for number in range(len(JOBS))] + [JobId("99.control")]
        write("qsub.txt", submitted[7])
        cluster.world.write(f"{cluster.home}/job.sh", "#!/bin/bash\ntrue\n")
        write("qsub-refused.txt", *(said(cluster, "qsub", *words, "job.sh") for words in REFUSED))
        write("qstat.txt", said(cluster, *WORDS.status_command(jobs)))
        write("qstat-x.txt", said(cluster, *WORDS.history_command(jobs)))
        write("qdel.txt", said(cluster, "qdel", "0", "99999"))
        for queue in ("workq", "still", "nosuch"):
            write(f"queue-{queue}.txt", said(cluster, "qstat", "-Q", "-f", queue))
        cluster.keep_history(False)
        write("qstat-no-history.txt", said(cluster, *WORDS.status_command(jobs)))
        write("qstat-x-no-history.txt", said(cluster, *WORDS.history_command(jobs)))
        cluster.stop_server()
        write("qstat-no-server.txt", said(cluster, *WORDS.status_command(jobs)))
        version = cluster.run_as_user(["qstat", "--version"]).stdout.strip()
        write("version.txt", f"{version}, recorded {datetime.date.today()}\n")


def submit(cluster: Pbs, options: str, body: str) -> str:
    script = f"{cluster.home}/job.sh"
    cluster.world.write(script, f"#!/bin/bash\n#PBS {options or '-r n'}\n{body}\n")
    return cluster.run_as_user(["qsub", "job.sh"]).stdout


def said(cluster: Pbs, *words: str) -> str:
    """What a command printed; what it complained stands below it, and its exit code."""
    done = cluster.run_as_user(words, check=False)
    complaint = f"-- on standard error\n{done.stderr}" if done.stderr else ""
    return f"{done.stdout}{complaint}-- exit code {done.returncode}\n"


def write(name: str, *texts: str) -> None:
    (HERE / name).write_text("".join(texts))


if __name__ == "__main__":
    main()
