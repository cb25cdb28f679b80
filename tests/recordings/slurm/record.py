"""Writes these recordings anew: `python -m tests.recordings.slurm.record` (as root on Debian)."""

import time
from pathlib import Path

from tests.lab import Lab, Site

from rabaska.domain.jobs import JobId
from rabaska.schedulers.slurm import Slurm

HERE = Path(__file__).parent
SLEEP = "#!/bin/bash\nsleep 600\n"


def record(lab: Lab) -> None:
    slurm = Slurm()
    script = f"{lab.home}/job.sh"
    lab.run_as_user(["tee", script], stdin="#!/bin/bash\nexit 0\n")
    account = ["--account", lab.site.project]
    said = lab.run_as_user(["sbatch", "--parsable", "--comment=rabaska-7f3a", *account, script])
    keep("sbatch.txt", said.stdout)
    jobs = [said.stdout.strip()]
    refused = (["--gpus-per-node=z9:1"], ["--time=99-0"], ["-p", "nowhere"], ["-A", "nobody"])
    errors = [lab.run_as_user(["sbatch", "--parsable", *account, *words, script], check=False)
              for words in refused]  # fmt: skip
    keep("sbatch-refused.txt", "".join(one.stderr for one in errors))
    failing = lab.sbatch("#!/bin/bash\nexit 3\n", *account)
    cancelled = lab.sbatch(SLEEP, *account)
    jobs += [
        failing,
        cancelled,
        lab.sbatch("#!/bin/bash\nkill -9 $$\n", *account),
        lab.sbatch(SLEEP, *account, "--array=1-4%1"),
        lab.sbatch(SLEEP, *account, "--hold", "--array=1,3,5-7"),
        lab.sbatch(SLEEP, *account, f"--dependency=afterok:{failing}"),
        lab.sbatch(SLEEP, *account, "--nodes=2", "--exclusive"),
    ]
    lab.wait_for_state(cancelled, "RUNNING")
    lab.run_as_user(["scancel", cancelled])
    lab.wait_for_state(cancelled, "CANCELLED")
    time.sleep(2)
    keep("squeue.txt", lab.run_as_user(slurm.status_command([])).stdout)
    wanted = [JobId(job) for job in jobs]
    keep("squeue-of-jobs.txt", lab.run_as_user(slurm.status_command(wanted)).stdout)
    keep("squeue-unexpanded.txt", lab.run_as_user(
        [word for word in slurm.status_command([]) if word != "--array"]).stdout)  # fmt: skip
    keep("sacct.txt", lab.run_as_user(slurm.history_command(wanted)).stdout)
    keep("version.txt", lab.run_as_user(["sbatch", "--version"]).stdout + time.strftime("%F\n"))


def keep(name: str, text: str) -> None:
    (HERE / name).write_text(text)


if __name__ == "__main__":
    with Lab(Site(accounting=True)) as booted:
        record(booted)
