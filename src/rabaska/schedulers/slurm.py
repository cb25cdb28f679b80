"""Slurm: sbatch, squeue, sacct, scancel."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobStatus,
    Resources,
    TrialAnswer,
)
from rabaska.schedulers import accounted_usage, slurm_queues
from rabaska.schedulers.protocol import COMMENT, SiteQueries
from rabaska.schedulers.slurm_queues import MEGABYTE, elements, status_of
from rabaska.schedulers.spelling import carried

_FOR_BATCH = ("--output", "--no-requeue", "--open-mode")  # options that salloc does not know
# A submission that waits for its job's end, or only tests, has no answer for us.
_OWN = (
    "--job-name",
    "-J",
    "--output",
    "-o",
    "--error",
    "-e",
    "--array",
    "-a",
    "--comment",
    "--wait",
    "-W",
    "--test-only",
)
_START = re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)|N/A|NONE", re.ASCII)
_MARK = "slurm"  # begins each of our lines, so that banners cannot be taken for one


@dataclass(frozen=True)
class Slurm:
    """How Slurm spells things at one site."""

    gpus_as_gres: bool = False  # `--gres=gpu:2`, for sites older than `--gpus-per-node`

    @property
    def name(self) -> str:
        return "slurm"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            shares=("cores", "memory"),
            array=True,
            array_at_once=True,
            dependency=True,
            signal_before_limit=True,
            mail=True,
            features=True,
            accounts=True,
            find=("squeue", "--me", "--noheader", "--states=all", "--format=%F %k"),
            gone="Invalid job id|already complet",
            lets_save=True,
            answer=rf"^{_MARK}\|JOBID\|",
            reach="srun",
            dependency_over="Job dependency problem",
            own_options=_OWN,
        )

    @property
    def site(self) -> SiteQueries:
        return slurm_queues.SITE

    def directives(self, spec: JobSpec) -> list[str]:
        chosen = {
            "--job-name": _quoted(spec.name) or "job",
            "--account": _quoted(spec.account),
            "--partition": _quoted(spec.queue),
            "--time": _time(spec.resources.walltime),
            **self._resources(spec.resources),
            "--constraint": _quoted("&".join(spec.features)),
            "--array": f"1-{spec.jobs}%{spec.at_once}" if spec.jobs > 1 else "",
            "--signal": f"B:USR1@{_seconds(spec.warn_before)}" if spec.warn_before else "",
            "--mail-user": _quoted(spec.mail),
            "--mail-type": "BEGIN,END,FAIL" if spec.mail else "",
            "--output": _quoted(_output(spec)),
        }
        options = [f"{option}={value}" for option, value in chosen.items() if value]
        if spec.resources.exclusive:
            options.append("--exclusive")
        # A job that is started again must not empty the file its first attempt wrote to.
        options += ["--requeue", "--open-mode=append"] if spec.requeue else ["--no-requeue"]
        native = [_one_line(option) for option in spec.native]
        return [f"#SBATCH {option}" for option in (*options, *native)]

    def _resources(self, asked: Resources) -> dict[str, str]:
        """Nothing is written of one node and one task: that is what every job gets."""
        several = asked.nodes > 1 or asked.tasks > 1
        gpus = ":".join(filter(None, [_one_line(asked.gpu_model), str(asked.gpus or "")]))
        option, kind = ("--gres", "gpu:") if self.gpus_as_gres else ("--gpus-per-node", "")
        return {
            "--nodes": str(asked.nodes) if several else "",
            "--ntasks-per-node": str(asked.tasks) if several else "",
            option: _quoted(kind + gpus) if asked.gpus else "",
            "--cpus-per-task": str(asked.cores or ""),
            "--mem": f"{asked.memory // MEGABYTE}M" if asked.memory else "",
        }

    def unmet(self, spec: JobSpec) -> list[str]:
        asked = spec.resources
        problems = {
            "the folder for the job's output has a name that #SBATCH lines cannot hold": (
                _one_line(spec.folder) != spec.folder or "\\" in spec.folder
            ),
            f"the program is started once, on the first of {asked.nodes} nodes; "
            "`launch` in rabaska.toml starts it on all of them": (
                asked.nodes > 1 and spec.launch == "program"
            ),
        }
        return [sentence for sentence, holds in problems.items() if holds]

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        waiting = [f"--dependency=afterany:{after}"] if after else []
        return ["sbatch", "--parsable", f"--comment={COMMENT}{{submission}}", *waiting, script]

    def read_job_id(self, output: str) -> JobId | None:
        # With several clusters configured, --parsable prints "1234;cluster" (sbatch(1)).
        found = re.findall(r"^(\d+)(?:;\S+)?[ \t\r]*$", output, re.MULTILINE | re.ASCII)
        found = found or re.findall(r"Submitted batch job (\d+)", output, re.ASCII)
        return JobId(found[-1]) if found else None

    def prospect_command(self, spec: JobSpec) -> list[str]:
        return ["sbatch", "--test-only"]

    def read_prospect(self, said: str) -> TrialAnswer:
        start = re.search(r"to start at (\d[\dT:-]+)", said, re.ASCII)
        refusals = re.findall(r"(?:allocation failure|error): (.+)", said)
        return TrialAnswer(start=start[1]) if start else TrialAnswer(refusal="".join(refusals[-1:]))

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        ids = ",".join(job.native for job in jobs)
        of_whom = ["--jobs", ids] if ids else ["--me"]
        form = f"{_MARK}|%i|%T|%r|%k|%j|%S|."
        # Its header tells an empty queue from a silent one.
        return ["squeue", "--array", "--states=all", *of_whom, "--format", form]

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        """For what has left the queue; sites without a database answer with an error."""
        ids = ",".join(job.native for job in jobs)
        return [
            "sacct",
            "--noheader",
            "--parsable2",
            "--format=JobID,State,ExitCode,Reason,ElapsedRaw,TotalCPU,NCPUS,MaxRSS,ReqMem",
            f"--jobs={ids}",
        ]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        for line in output.splitlines():
            parts = line.strip().split("|")
            if len(parts) >= 7 and parts[0] == _MARK and parts[-1] == ".":
                job, state, reason, comment = parts[1:5]
                # Of a job that has no time yet it says N/A; a name may hold bars.
                timed = len(parts) >= 8 and _START.fullmatch(parts[-2])
                name = "|".join(parts[5 : -2 if timed else -1])
                carries = tuple(one for one in (name, comment) if one not in ("", "(null)"))
                starts = timed["time"] or "" if timed else ""
                status = replace(status_of(state, reason), carries=carries, starts=starts)
                found.update((element, status) for element in elements(job))
        return found

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        used = accounted_usage.by_sacct(output)
        for line in output.splitlines():
            parts = line.strip().split("|")
            if len(parts) >= 4 and re.fullmatch(r"\d{1,3}:\d{1,3}", parts[2], re.ASCII):
                job, state, code, reason = parts[:4]
                exit_code, signal = (int(number) for number in code.split(":"))
                known = status_of(state, reason, exit_code or (128 + signal if signal else 0))
                known = replace(known, used=used.get(job) if known.state.over else None)
                found.update((name, known) for name in elements(job))
        return found

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["scancel", *(job.native for job in jobs)]

    def carried_command(self, job: JobId) -> list[str]:
        ask = 'squeue --noheader --states=all --jobs="$0" --format="%j|%k"'
        return carried(ask, r"s/|(null)$//; s/\(.*\)|/\1\n/; p", job.native)

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        once = replace(spec, jobs=1, warn_before=timedelta(0), mail="", requeue=False)
        lines = (line.removeprefix("#SBATCH ") for line in self.directives(once))
        options = [word for line in lines for word in shlex.split(line)]
        asked = [option for option in options if not option.startswith(_FOR_BATCH)]
        # srun does not take it over from salloc since 22.05 (srun(1), --cpus-per-task).
        cores = spec.resources.cores
        step = ["srun", *_on_first_node(terminal), *([f"--cpus-per-task={cores}"] if cores else [])]
        return ["salloc", *asked, *step, "bash", script]

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        pays = [f"--account={account}"] if account else []
        return ["srun", "--quiet", "--ntasks=1", "--time=1", *pays, *command]

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        # srun knows an element of an array only by its plain number, which squeue prints as %A.
        number = '$(squeue --noheader --jobs="$0" --format=%A)'
        step = ["--overlap", *_on_first_node(terminal), *command]
        return ["sh", "-c", f'exec srun --jobid="{number}" "$@"', job, *step]

    def in_job(self) -> InJob:
        element = "${SLURM_ARRAY_JOB_ID:+_$SLURM_ARRAY_TASK_ID}"
        # Before 23.02 no variable says when the job ends; the queue knows.
        asked = "timeout 20 squeue --noheader --jobs=$SLURM_JOB_ID --format=%e"
        # Only of those that wait: of others scontrol complains, and of an array without them too.
        rest = "${SLURM_ARRAY_JOB_ID}_$((SLURM_ARRAY_TASK_ID + 1))-$SLURM_ARRAY_TASK_MAX"
        waits = '[ "${SLURM_ARRAY_TASK_ID:-0}" -lt "${SLURM_ARRAY_TASK_MAX:-0}" ]'
        exclude = f'{waits} && echo "scontrol update JobId={rest} ExcNodeList=NODES"'
        waiting = "scancel --state=PENDING $SLURM_ARRAY_JOB_ID"
        return InJob(
            job_id="${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}" + element,
            ends="${SLURM_JOB_END_TIME:-$(" + asked + ")}",
            local_space="${SLURM_TMPDIR:-}",
            cancel_rest="${SLURM_ARRAY_JOB_ID:+" + waiting + "}",
            waiting="squeue --me --noheader --array --states=PENDING "
            "--name=$SLURM_JOB_NAME --format=%i",
            # Slurm gives a job back the time for which it suspended it; then the agent asks again.
            extra={
                "RABASKA_ONE_AT_A_TIME": "yes",
                "RABASKA_ASK_END": asked,
                "RABASKA_EXCLUDE": f"$({exclude})",
                "RABASKA_NODES": "sinfo --noheader --Node -p $SLURM_JOB_PARTITION"
                " --format=%N,%c,%m,%G,%f",
            },
        )


def _on_first_node(terminal: bool) -> list[str]:
    return ["--nodes=1", "--ntasks=1", *(["--pty"] if terminal else [])]


def _output(spec: JobSpec) -> str:
    # A percent sign begins a replacement, and two stand for one (sbatch(1), FILENAME PATTERN).
    job = "%A_%a" if spec.jobs > 1 else "%j"
    return f"{_one_line(spec.folder).replace('%', '%%')}/scheduler-{job}.out"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    """One word of an #SBATCH line; what is plain stays as people would write it."""
    line = _one_line(text)
    if re.fullmatch(r"[\w@%+=:,./&|*\[\]-]*", line):
        return line
    return '"' + re.sub(r'(["\\])', r"\\\1", line) + '"'


def _time(walltime: timedelta) -> str:
    """`D-HH:MM:SS`, rounded up to whole minutes as Slurm does itself."""
    minutes = -(-round(walltime.total_seconds()) // 60)
    days, rest = divmod(minutes, 1440)
    return f"{days}-{rest // 60:02d}:{rest % 60:02d}:00"


def _seconds(span: timedelta) -> int:
    return max(1, round(span.total_seconds()))
