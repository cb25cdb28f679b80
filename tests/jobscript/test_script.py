"""The text of job.sh: readable, and accepted by shellcheck and bash."""

import shutil
import subprocess
from datetime import timedelta

from rabaska.domain.jobs import InJob, JobSpec, Resources
from rabaska.jobscript.script import Agent, render

SPEC = JobSpec(
    name="cats-7f3a", resources=Resources(walltime=timedelta(hours=3)), folder="/runs/logs", jobs=4
)
AGENT = Agent(python="python3", program="/store/node/ab12.pyz", run="/store/my runs/cats-7f3a")


def script(**changes):
    parts = {
        "spec": SPEC,
        "directives": ["#SBATCH --time=03:00:00"],
        "in_job": InJob(job_id="${SLURM_JOB_ID}", local_space="${SLURM_TMPDIR:-/tmp}"),
        "setup": ["module load python/3.8"],
        "agent": AGENT,
    }
    return render(**(parts | changes))


def test_the_script_reads_from_directives_to_one_exec():
    lines = script().splitlines()

    assert lines[0] == "#!/bin/bash"
    assert lines[1] == "#SBATCH --time=03:00:00"
    assert "up to 4 jobs of 3 h each" in script()
    assert lines[-1] == "exec python3 /store/node/ab12.pyz run '/store/my runs/cats-7f3a'"
    assert 'export RABASKA_LOCAL="${SLURM_TMPDIR:-/tmp}"' in lines


def test_what_the_scheduler_exports_itself_is_not_exported_again():
    assert "RABASKA_JOB_ID" not in script(in_job=InJob(job_id="", ends="$RABASKA_JOB_ENDS"))


def test_time_spent_before_the_agent_begins_counts_towards_the_limit(tmp_path):
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\necho "$RABASKA_JOB_ENDS $(date +%s)"\n')
    agent.chmod(0o755)
    text = script(in_job=InJob(job_id=""), setup=["sleep 2"], agent=Agent(str(agent), "", ""))

    ran = subprocess.run(["bash"], input=text, capture_output=True, text=True, check=True)

    ends, now = map(int, ran.stdout.split())
    assert ends - now in range(3 * 3600 - 60, 3 * 3600 - 1)


def test_shellcheck_finds_nothing_to_say():
    checked = subprocess.run(
        [shutil.which("shellcheck", path=".venv/bin") or "shellcheck", "-"],
        input=script(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert checked.stdout == ""
    assert checked.returncode == 0
