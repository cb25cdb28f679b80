"""Writes qstat-slurm.txt anew: `python tests/recordings/torque/record_slurm.py`, as root."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from tests.lab import Lab  # noqa: E402
from tests.lab.torque_commands import give_torque_commands  # noqa: E402

from rabaska.domain.jobs import JobId  # noqa: E402
from rabaska.schedulers.torque import Torque  # noqa: E402


def main() -> None:
    with Lab() as lab:
        give_torque_commands(lab)
        for body in ("true", "sleep 60", "true"):
            lab.world.write(f"{lab.home}/job.sh", f"#!/bin/bash\n#PBS -N cats-7f3a\n{body}\n")
            after = ["-W", "depend=afterany:2"] if lab.job("2") else []
            lab.run_as_user(["qsub", *after, "job.sh"])
        lab.wait_for_state("1", "COMPLETED")
        lab.wait_for_state("2", "RUNNING")
        jobs = [JobId(str(number)) for number in (1, 2, 3, 99)]
        told = lab.run_as_user(Torque().status_command(jobs), check=False)
        (HERE / "qstat-slurm.txt").write_text(told.stdout)


if __name__ == "__main__":
    main()
