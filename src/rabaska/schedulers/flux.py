"""Flux: flux batch, flux jobs, flux cancel.

Each batch job is a Flux instance of its own, in which plain `flux` speaks of that instance alone;
`--parent` is the one that the job runs in. Ids are spelled in decimal: the usual ones begin with a
letter that is not ASCII, and every command takes either.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobState,
    JobStatus,
    Resources,
    TrialAnswer,
)
from rabaska.schedulers import flux_queues
from rabaska.schedulers.protocol import SiteQueries
from rabaska.schedulers.spelling import (
    job_name,
    jobs_called,
    on_node,
    once_on_the_first,
    one_line,
    one_word,
    said,
)

_STATES = {
    "DEPEND": JobState.QUEUED,
    "PRIORITY": JobState.QUEUED,
    "SCHED": JobState.QUEUED,
    "RUN": JobState.RUNNING,
    "CLEANUP": JobState.STOPPING,
    "COMPLETED": JobState.DONE,
    "FAILED": JobState.FAILED,
    "CANCELED": JobState.CANCELLED,
    "TIMEOUT": JobState.TIMEOUT,
}
_MARK = "flux"  # begins each of our lines, so that banners cannot be taken for one
# The note of an exception and the name may hold anything, so they stand last.
_FORMAT = (
    f"{_MARK}|{{id.dec}}|{{status}}|{{returncode}}|{{urgency}}|{{t_run}}|{{dependencies}}"
    "|{exception.type}|{exception.note}|{name}|."
)
_LINE = re.compile(
    rf"{_MARK}\|(?P<id>\d+)\|(?P<status>[A-Z]+)\|(?P<code>-?\d*)\|(?P<urgency>\d+)"
    r"\|(?P<began>[\d.]*)\|(?P<waits>[^|]*)\|(?P<type>[^|]*)\|(?P<note>.*)\|(?P<name>[^|]*)\|\.",
    re.ASCII,
)
_NEVER_RAN = ("alloc", "dependency")  # exceptions of a job that could not begin
_ID = re.compile(r"^(\d{1,20})[ \t\r]*$", re.MULTILINE | re.ASCII)
_FOR_BATCH = ("--output", "--signal")

# A job of ours that adds another one asks the instance that it runs in itself.
_FLUX = "flux ${RABASKA_JOB_ID:+--parent}"
_SUBMIT = f"""\
export FLUX_F58_FORCE_ASCII=1
{_FLUX} getattr size >/dev/null || {{ echo "flux: cannot connect to server" >&2; exit 1; }}
id=$({_FLUX} batch "$@") && flux job id --to=dec "$id"
"""
_CALLED = f'{_FLUX} jobs -a --count=0 --name="$0" --no-header --format="{{id.dec}}"'
_WAITING = "flux --parent jobs --filter=pending --count=0 --name={name} -no {id.dec}"
# The last first: when one is cancelled that others wait for, the next may begin.
_CANCEL_REST = f"sh -c '{_WAITING} | sort -rn | xargs -r flux --parent cancel'"
_NODE = 'flux hostlist --nth=0 "$(flux jobs -no "{nodelist}" "$0")"'
_REACH = (
    """flux hostlist --expand --delimiter='\\n' "$(flux getattr hostlist)"; """
    "flux exec --rank={place}"
)


@dataclass(frozen=True)
class Flux:
    @property
    def name(self) -> str:
        return "flux"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            shares=("cores",),
            dependency=True,
            dependency_over=r"dependency: afterany: id \S+: job not found",
            signal_before_limit=True,
            features=True,
            accounts=True,
            find=jobs_called(_CALLED),
            gone="job is inactive|unknown job id",
            answer=rf"^{_MARK}\|JOBID\|",
            reach=_REACH,
            own_options=("--job-name", "--output", "--error", "--dry-run"),
        )

    @property
    def site(self) -> SiteQueries:
        return SiteQueries(
            programs=("flux",),
            version_commands=(flux_queues.VERSION_COMMAND,),
            version=r"^flux-core \d\S*",
            questions=flux_queues.QUESTIONS,
            is_there=lambda programs, versions: "flux" in programs,
            partitions=flux_queues.of_site,
        )

    def directives(self, spec: JobSpec) -> list[str]:
        options = [
            f"--job-name={job_name(spec.name)}",
            *_wanted(spec),
            f"--signal=USR1@{_seconds(spec.warn_before)}" if spec.warn_before else "",
            f"--output={one_line(spec.folder)}/scheduler-{{{{id.dec}}}}.out",
        ]
        words = [shlex.quote(option) for option in options if option]
        return [f"#flux: {word}" for word in (*words, *map(one_line, spec.native))]

    def unmet(self, spec: JobSpec) -> list[str]:
        model = one_word(spec.resources.gpu_model)
        return said(
            {
                "Flux sends no mail": bool(spec.mail),
                f"Flux has no common word for a {model}: give the site's own property under "
                "`features`": bool(model) and model not in spec.features,
                "Flux cannot be asked for memory: a job has that of its nodes, shared with others "
                "unless it is `exclusive`": bool(spec.resources.memory),
                "the folder for the job's output has a line break or {{ in its name": (
                    one_line(spec.folder) != spec.folder or "{{" in spec.folder
                ),
                **once_on_the_first(spec),
            }
        )

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        waiting = [f"--dependency=afterany:{after}"] if after else []
        return ["sh", "-c", _SUBMIT, "flux", *waiting, script]

    def read_job_id(self, output: str) -> JobId | None:
        found = _ID.findall(output)
        return JobId(found[-1]) if found else None

    def prospect_command(self, spec: JobSpec) -> list[str]:
        return []  # `--dry-run` checks neither limits nor queues

    def read_prospect(self, said: str) -> TrialAnswer:
        return TrialAnswer()

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        of_whom = [*map(str, jobs)] or ["-a", "--count=0"]
        return ["flux", "jobs", f"--format={_FORMAT}", *of_whom]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        lines = (_LINE.fullmatch(line.strip()) for line in output.splitlines())
        return {job["id"]: _status(job) for job in lines if job}

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return []  # `flux jobs -a` shows what ended until its site purges it

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        """The last first: when one is cancelled that others wait for, the next may begin."""
        return ["flux", "cancel", *map(str, reversed(jobs))]

    def carried_command(self, job: JobId) -> list[str]:
        return ["flux", "jobs", "--no-header", "--format={name}", str(job)]

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        native = [word for option in spec.native for word in shlex.split(one_line(option))]
        name = f"--job-name={job_name(spec.name)}"
        return ["flux", "alloc", name, *filter(None, _wanted(spec)), *native, "bash", script]

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        pays = [f"--bank={account}"] if account else []
        return ["flux", "run", "--ntasks=1", "--time-limit=1m", *pays, *command]

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        if terminal:  # `flux exec` gives none
            return on_node(_NODE, job, shlex.join(command), terminal=True)
        return ["flux", "exec", f"--jobid={job}", "--rank=0", *command]

    def in_job(self) -> InJob:
        return InJob(
            job_id='$(flux job id --to=dec "$FLUX_ENCLOSING_ID")',
            ends="$(($(date +%s) + $(flux job timeleft)))",
            cancel_rest=_CANCEL_REST,
            waiting=_WAITING,
        )


def _wanted(spec: JobSpec) -> list[str]:
    """What is asked for: a slot on each node, which has all that the job has there."""
    asked: Resources = spec.resources
    account, queue = one_word(spec.account), one_word(spec.queue)
    return [
        f"--bank={account}" if account else "",
        f"--queue={queue}" if queue else "",
        f"--time-limit={_seconds(asked.walltime)}",
        f"--nodes={asked.nodes}" if asked.nodes > 1 or asked.exclusive else "",
        f"--nslots={asked.nodes}",
        f"--cores-per-slot={(asked.cores or 1) * asked.tasks}",
        f"--gpus-per-slot={asked.gpus}" if asked.gpus else "",
        "--exclusive" if asked.exclusive else "",
        *(f"--requires={one_word(feature)}" for feature in spec.features),
    ]


def _seconds(span: timedelta) -> str:
    return f"{max(1, -(-span // timedelta(seconds=1)))}s"


def _status(job: re.Match[str]) -> JobStatus:
    state = _STATES.get(job["status"], JobState.UNKNOWN)
    began = job["began"].strip("0.") != ""
    code = int(job["code"]) if began and re.fullmatch(r"\d{1,9}", job["code"]) else None
    reason = " ".join(job["note"].split())
    if state is JobState.DONE and code != 0:
        state = JobState.UNKNOWN
    elif state is JobState.FAILED and job["type"] in _NEVER_RAN and not began:
        state = JobState.NEVER_RAN
    elif state is JobState.FAILED and job["type"] == "node-failure":
        state = JobState.NODE_FAILED
    elif state is JobState.QUEUED and job["urgency"] == "0":
        state, reason = JobState.HELD, f"held: `flux job urgency {job['id']} default` lets it go"
    elif state is JobState.QUEUED and job["waits"]:
        reason = f"waits: {job['waits']}"
    name = tuple(filter(None, [job["name"]]))
    return JobStatus(state, job["status"], reason, code if state.over else None, name)
