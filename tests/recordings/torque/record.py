"""Writes what an installed Torque prints anew: `python -m tests.recordings.torque.record`, as root.

It boots the Torque that `tests/lab/torque.py` finds, and runs the commands of the product there.
"""

import datetime
import re
import time
from pathlib import Path

from tests.lab.torque import Torque as Cluster

from rabaska.domain.jobs import JobId
from rabaska.schedulers.torque import Torque
from rabaska.sites import questions
from rabaska.steps.probe_site import site_questions

HERE = Path(__file__).parent
WORDS = Torque()
LONG = "sleep 300"
# Each job by its options and what it does; numbers are given in this order, from 0.
JOBS = (
    ("", "true"),
    ("", "exit 3"),
    ("-l walltime=00:00:02", LONG),
    ("", LONG),  # deleted
    ("-W depend=afterok:1", LONG),  # what it waits for failed
    ("", "kill -9 $$"),
    ("", "kill -9 $PPID"),  # the shell that runs it
    ("", LONG),
    ("-W depend=afterany:7", LONG),  # deleted; the next is not
    ("-W depend=afterany:8", LONG),
    ("-W depend=afterany:7", LONG),  # held by its user
    ("-h", LONG),  # held by its user
    ("", LONG),  # suspended
    ("-l nodes=2:ppn=4", LONG),  # waits: there is less
    ("-q still", LONG),
    ("", LONG),  # run again
)
REFUSED = (
    ["-l", "walltime=1000:00:00"], ["-l", "foo=1"], ["-q", "nosuch"],
    ["-l", "walltime=1-00:00:00"], ["-l", "nodes=1:ppn=1:gpus=8"], ["-l", "nodes=1:v100"],
    ["-l", "nodes=9"], ["-W", "depend=afterany:99999"], ["-W", "depend=afterany:0"],
    ["-q", "shut"],
)  # fmt: skip


def main() -> None:
    with Cluster() as cluster:
        for queue, settings in {"still": ("True", "False"), "shut": ("False", "True")}.items():
            cluster.tell(f"create queue {queue} queue_type=Execution")
            cluster.tell(f"set queue {queue} enabled = {settings[0]}")
            cluster.tell(f"set queue {queue} started = {settings[1]}")
        told = record(cluster)
        version = re.search(r"Version: (\S+)", told["version"])
        head = f"Torque {version[1] if version else '?'}, recorded {datetime.date.today()}"
        for name, text in told.items():
            if name != "version":
                (HERE / name).write_text(f"# {head}\n{text}")


def record(cluster: Cluster) -> dict[str, str]:
    submitted = [submit(cluster, *job) for job in JOBS]
    jobs = [JobId(name.strip()) for name in submitted if name.strip()]
    running = [jobs[number] for number in (3, 7, 12, 15)]
    cluster.wait_until(lambda: {"R"} == {letter(cluster, job) for job in running})
    cluster.run_as_user(["qdel", "8"])
    cluster.run_as_user(["qdel", "3"])
    cluster.run_as_user(["qhold", "10"])
    cluster.admin("qsig", "-s", "suspend", "12", check=False)
    cluster.admin("qrerun", "15")
    cluster.wait_until(lambda: letter(cluster, jobs[2]) == "C", patience=120)
    cluster.wait_until(lambda: letter(cluster, jobs[15]) == "R", patience=120)
    time.sleep(3)
    asked = [*jobs, JobId("99999.control")]
    cluster.world.write(f"{cluster.home}/job.sh", "#!/bin/bash\ntrue\n")
    told = {
        "version": said(cluster, "qstat", "--version"),
        "qsub.txt": submitted[0],
        "qsub-refused.txt": "".join(said(cluster, "qsub", *each, "job.sh") for each in REFUSED),
        "qstat.txt": said(cluster, *WORDS.status_command(asked)),
        "qdel.txt": said(cluster, "qdel", "0") + said(cluster, "qdel", "99999"),
        "site.txt": said(cluster, "bash", "-lc", questions.script(site_questions())),
    }
    cluster.keep_history(False)
    cluster.run_as_user(["qdel", "7"])
    cluster.wait_until(lambda: letter(cluster, jobs[7]) == "")
    told["qstat-no-history.txt"] = said(cluster, *WORDS.status_command([jobs[7], jobs[9]]))
    cluster.stop_server()
    told["qstat-no-server.txt"] = said(cluster, *WORDS.status_command(jobs[9:10]))
    return told


def submit(cluster: Cluster, options: str, body: str) -> str:
    script = f"{cluster.home}/job.sh"
    cluster.world.write(script, f"#!/bin/bash\n#PBS -N cats-7f3a {options}\n{body}\n")
    return cluster.run_as_user(["qsub", "job.sh"], check=False).stdout


def letter(cluster: Cluster, job: JobId) -> str:
    told = cluster.run_as_user(["qstat", "-f", str(job)], check=False).stdout
    found = re.search(r"job_state = (\w)", told)
    return found[1] if found else ""


def said(cluster: Cluster, *words: str) -> str:
    """What a command printed; what it complained stands below it, and its exit code."""
    done = cluster.run_as_user(words, check=False)
    complaint = f"-- on standard error\n{done.stderr}" if done.stderr else ""
    return f"{done.stdout}{complaint}-- exit code {done.returncode}\n"


if __name__ == "__main__":
    main()
