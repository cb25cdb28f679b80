"""Writes these files anew, in an instance of four brokers, as an ordinary user:

PYTHONPATH=src flux start --test-size=4 --test-hosts='node[1-4]' \
    --config-path=tests/recordings/flux/queues.toml python3 tests/recordings/flux/record.py FOLDER
"""

import datetime
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rabaska.domain.jobs import JobId, JobSpec, Resources
from rabaska.schedulers import recognition
from rabaska.schedulers.flux import Flux
from rabaska.sites import questions

FLUX = Flux()
SPEC = JobSpec("cats-7f3a", Resources(datetime.timedelta(minutes=5)), "logs")
# What each job does, by its name; how it is submitted.
JOBS: dict[str, tuple[str, ...]] = {
    "done": ("true",),
    "exit3": ("exit 3",),
    "killed": ("kill -9 $$",),
    "limit": ("sleep 600", "--time-limit=4s"),
    "cancelled": ("sleep 600",),
    "running": ("sleep 600",),
    "after": ("true", "--dependency=afterany:{running}"),
    "never": ("true", "--dependency=afterok:{exit3}"),
    "impossible": ("true", "--nodes=9", "--nslots=9"),
    "held": ("true", "--urgency=0"),
    "begin": ("true", "--begin-time=+1h"),
    "waiting": ("true", "--nodes=4", "--nslots=4"),
    "dropped": ("true", "--urgency=0"),
}
REFUSED = (
    ("--time-limit=3h",),
    ("--queue=nosuch",),
    ("--queue=debug", "--nodes=3", "--nslots=3", "--time-limit=1m"),
    ("--nosuch",),
    ("--dependency=afterany:99999",),
)


def said(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    error = f"-- on standard error\n{done.stderr}" if done.stderr else ""
    return f"{done.stdout}{error}-- exit code {done.returncode}\n"


def submit(name: str, *options: str) -> str:
    Path("job.sh").write_text(
        "\n".join(["#!/bin/bash", *FLUX.directives(replace(SPEC, name=name)), JOBS[name][0], ""])
    )
    words = FLUX.submit_command("job.sh", SPEC)
    return subprocess.check_output([*words[:-1], *options, words[-1]], text=True)


def record() -> dict[str, str]:
    asked = {
        recognition.PROGRAMS: questions.programs_question(["flux"]),
        recognition.VERSIONS: "; ".join(FLUX.site.version_commands),
        **FLUX.site.questions,
    }
    told = {"site-stopped.txt": said(["bash", "-c", questions.script(asked)])}
    subprocess.run(["flux", "queue", "start", "--all", "--quiet"], check=True)
    while "4" not in said(["flux", "resource", "list", "-s", "free", "-no", "{nnodes}"]):
        time.sleep(0.5)
    told["jobs-none.txt"] = said(FLUX.status_command([]))
    jobs: dict[str, str] = {}
    for name, (_, *options) in JOBS.items():
        printed = submit(name, *(option.format_map(jobs) for option in options))
        told.setdefault("batch.txt", printed)
        jobs[name] = printed.strip()
    subprocess.run(["flux", "job", "wait-event", "-t60", jobs["cancelled"], "start"], check=True)
    cancel = [JobId(jobs["cancelled"]), JobId(jobs["dropped"])]
    subprocess.run(FLUX.cancel_command(cancel), check=True)
    for name in ("done", "exit3", "killed", "limit", "cancelled", "never", "dropped"):
        subprocess.run(["flux", "job", "wait-event", "-t90", jobs[name], "clean"], check=True)
    told["jobs.txt"] = said(FLUX.status_command([]))
    told["jobs-by-id.txt"] = said(FLUX.status_command([JobId(jobs["done"]), JobId("99999")]))
    told["carried.txt"] = said(FLUX.carried_command(JobId(jobs["done"])))
    told["cancel.txt"] = said(FLUX.cancel_command([JobId(jobs["done"]), JobId("99999")]))
    told["batch-refused.txt"] = "".join(
        said([*FLUX.submit_command("job.sh", SPEC)[:-1], *options, "job.sh"]) for options in REFUSED
    )
    subprocess.run(["flux", "cancel", "--all", "--quiet"], check=True)
    told["site.txt"] = said(["bash", "-c", questions.script(asked)])
    told["no-broker.txt"] = said(
        ["env", "-u", "FLUX_URI", *FLUX.submit_command("job.sh", SPEC)]
    ) + said(["env", "-u", "FLUX_URI", *FLUX.status_command([])])
    return told


if __name__ == "__main__":
    kept = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("logs").mkdir()
        version = subprocess.check_output(["flux", "version"], text=True).split()[1]
        for name, text in record().items():
            head = f"# flux-core {version}, recorded {datetime.date.today()}\n"
            (kept / name).write_text(head + text)
        os.chdir("/")
