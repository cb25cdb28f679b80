"""Writes site.txt anew: `python -m tests.recordings.slurm.record_site` (as root on Debian)."""

import shlex
import subprocess
from pathlib import Path

from tests.lab import Lab, Site

from rabaska.schedulers.slurm import Slurm
from rabaska.sites import questions
from rabaska.steps.probe_site import site_questions

if __name__ == "__main__":
    with Lab(Site()) as lab:
        lab.path("/etc/pip.conf").write_text("")  # the machine's, which is no part of the lab
        for program in ("qsub", "qstat", "qconf", "qhost"):  # Grid Engine's, of the machine
            lab.path(f"/usr/bin/{program}").unlink(missing_ok=True)
        asked = questions.script(
            {
                **site_questions(),
                questions.PROBE_NAME: shlex.join(
                    Slurm().waited_command(["bash", "-c", questions.job_question()], account="")
                ),
            }
        )
        words = ["ssh", "-F", str(lab.ssh_config), "lab", "bash -l"]
        said = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    Path(__file__).with_name("site.txt").write_text(said.stdout)
