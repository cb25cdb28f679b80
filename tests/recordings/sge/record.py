"""Writes the recordings beside this file anew: `python tests/recordings/sge/record.py`, as root."""

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from tests.lab.grid_engine import GridEngine  # noqa: E402

from rabaska.domain.jobs import JobId  # noqa: E402
from rabaska.schedulers.sge import Sge  # noqa: E402

SCHEDULER = Sge()
# Each job by its options and what it does; numbers are given in this order, from 1.
JOBS = (
    ("", "true"),
    ("", "exit 3"),
    ("-l h_rt=00:00:03", "sleep 60"),
    ("", "sleep 60"),  # cancelled
    ("-t 1-4 -tc 1 -l h_rt=00:02:00", "sleep 120"),
    ("-h", "true"),
    ("-o /no/such/folder/out", "true"),
    ("", "kill -9 $$"),
    ("-l gpu=2", "sleep 120"),
    ("-l gpu=2", "sleep 120"),
)
REFUSED = (["-q", "nosuch", "job1.sh"], ["-l", "foo=1", "job1.sh"], ["nofile.sh"])


def main() -> None:
    with GridEngine() as cluster:

        def said(*words: str) -> str:
            done = cluster.run_as_user(words, check=False)
            return done.stdout + done.stderr

        submitted = []
        for number, (options, body) in enumerate(JOBS, 1):
            script = f"{cluster.home}/job{number}.sh"
            cluster.world.write(
                script, f"#!/bin/bash\n#$ -S /bin/bash\n#$ {options or '-r n'}\n{body}\n"
            )
            submitted.append(said(*SCHEDULER.submit_command(script, None)))  # type: ignore[arg-type]
        time.sleep(8)
        cancelled = said(*SCHEDULER.cancel_command([JobId("4")]))
        time.sleep(12)
        jobs = [JobId(str(number)) for number in range(1, len(JOBS) + 1)]
        write("qsub.txt", submitted[0])
        write("qsub-array.txt", submitted[4])
        write("qsub-refused.txt", "".join(said("qsub", "-terse", *words) for words in REFUSED))
        write("qdel.txt", cancelled + said("qdel", "99999"))
        write("qstat.xml", said("env", f"USER={cluster.user}", *SCHEDULER.status_command([])))
        write("qacct.txt", said(*SCHEDULER.history_command(jobs)))


def write(name: str, text: str) -> None:
    (HERE / name).write_text(text)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as problem:
        sys.exit(str(problem))
