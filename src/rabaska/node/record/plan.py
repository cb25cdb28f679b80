"""run.json: the plan of a run, written once, read by every job."""

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from .. import files
from . import field_types, learned_patterns
from .run_folder import RunFolder

FORMAT = 1


IN_PLACE = "in place"  # the mode of data that is read where it is, without a pack


class StagedData(NamedTuple):
    name: str
    pack: str  # "<name>-<digest>", a folder of <store>/packs; "" with IN_PLACE
    mode: str  # "files", "shards" or IN_PLACE
    path: str = ""  # with IN_PLACE: where it is, as the nodes see it


class Launch(NamedTuple):
    """How the program's processes are started."""

    form: str = "program"  # "program": once; else "torchrun", "srun" or "mpi"
    nodes: int = 1
    tasks: int = 1  # processes per node
    cores: Optional[int] = None  # per task
    mpi: str = ""  # "mpirun", or what `srun --mpi=` calls it; "" leaves it to the site
    reach: str = "srun"  # what starts a word on the job's other nodes; "": there are none


# How a rehearsal interrupts a job.
KILL = "kill"
KILL_WHILE_SAVING = "kill while saving"
ASK = "ask"


class PlannedInterruption(NamedTuple):
    """Where a rehearsal interrupts a job."""

    how: str  # KILL, KILL_WHILE_SAVING or ASK
    step: Optional[int]  # not before the program has told of this step
    latest: Optional[int]  # from this step on, whatever was saved
    seconds: float  # after its start, for a program that tells of no steps
    damage: bool = False  # then cut its newest checkpoint short


class Nearby(NamedTuple):
    """Folders of the nodes that all jobs of a user see; may hold variables, "" where none is."""

    memory: str = ""  # lies in memory
    shared: str = ""  # lies on a disk, and outlives a job


# What the source of a program shows of how it goes on from a checkpoint.
FULL = "full"  # what is loaded reaches the training state and its counter
ITSELF = "itself"  # so, and it finds the checkpoint in its own output
VARIABLE = "variable"  # it reads our variables
WEIGHTS = "weights only"  # its counter starts again
NOT = "not"  # it loads nothing that it could go on from
UNREAD = "could not be read"


class Growth(NamedTuple):
    """How a run adds jobs to its chain by itself (see `growth`)."""

    at_most: Optional[int] = 0  # that it may have in all; None: nobody said
    words: Sequence[str] = ()  # submit one more, to begin after the job `{after}`
    find: Sequence[str] = ()  # ask the queue for a submission whose answer was lost
    why_not: str = ""  # in words, where jobs may not submit jobs


class RequestedResources(NamedTuple):
    """What each job requests, per node; None leaves the choice to the cluster."""

    walltime: float = 0.0  # seconds
    gpus: int = 0
    gpu_model: str = ""
    nodes: int = 1
    tasks: int = 1  # processes
    cores: Optional[int] = None  # per task
    memory: Optional[int] = None  # bytes
    exclusive: bool = False


class LongestQueue(NamedTuple):
    """The queue that fits whose jobs may take longest."""

    queue: str = ""
    walltime: Optional[float] = None  # seconds; None: not all limits are known


class JobRequest(NamedTuple):
    """What a later submission of the run is made of (`resume`), and `show` prints.

    Of all this, the node side reads `longest`, for its forecast, and the laptop reads `native` and
    `unmet` in the report of a run.
    """

    resources: RequestedResources = RequestedResources()
    account: str = ""
    queue: str = ""
    features: Sequence[str] = ()
    mail: str = ""
    native: Sequence[str] = ()  # options in the scheduler's own words
    requeue: bool = True
    setup: Sequence[str] = ()  # lines of the job script that enter the environment
    local: str = ""  # node-local space, as the job's shell spells it
    longest: LongestQueue = LongestQueue()
    unmet: Sequence[str] = ()  # what is requested and the scheduler cannot do, in words


# Whether the code of a run is exactly that of its commit.
CLEAN = "clean"
CHANGED = "changed"


class Origin(NamedTuple):
    """Where a run comes from and where it is, for people.

    Jobs read `cluster` for the commands that they name in messages; `adopt` on another computer
    reads `project` and `folder`.
    """

    project: str = ""
    folder: str = ""  # of the project, on the computer that submitted it
    cluster: str = ""
    scheduler: str = ""
    created: str = ""  # a time, ISO 8601
    commit: str = ""  # of the project's git repository; "" outside of one
    tree: str = ""  # CLEAN, or CHANGED where the code is not exactly that commit's
    note: str = ""
    tags: Sequence[str] = ()
    like: str = (
        ""  # the run that this one continues or repeats, and its cluster: `cats-7f3a on here`
    )


class Plan(NamedTuple):
    run: str
    command: List[str]  # with placeholders: {data} {data.NAME} {output} {checkpoints} {checkpoint}
    resume: List[str]  # words added once there is a checkpoint
    code: str  # digest of the snapshot, a file of <store>/code
    datasets: List[StagedData]
    patterns: List[str]  # what a checkpoint file is called
    keep: List[str]  # paths beside the code that outlive a job
    variables: Dict[str, str]  # extra environment of the program
    walltime: float  # seconds one job may take
    grace: float  # seconds between asking the program to save and the limit
    signal: str  # how it is asked: "TERM", "USR1" ...
    jobs: int  # how many jobs were asked for at first
    progress: str  # a regular expression that finds step numbers, or ""
    origin: Origin = Origin()  # with `request`, the object `about` of run.json
    request: JobRequest = JobRequest()
    launch: Launch = Launch()
    nearby: Nearby = Nearby()
    watch: bool = True  # whether the program is watched
    cuts: Sequence[PlannedInterruption] = ()  # of a rehearsal: one for each job, from the first on
    tries: str = ""  # an address outside that a node tries, where nobody knows if it reaches it
    growth: Growth = Growth()
    secrets: Sequence[str] = ()  # names of variables whose values are in secrets.json
    id: str = ""  # 128 random bits: two runs may have one name, never one id
    resumes: str = ""  # FULL, ITSELF, …; "" when nobody looked


# Both are read from `about`.
_IN_ABOUT = ("origin", "request")
# A run that was submitted before they were known has none of them.
_ADDED_LATER = ["launch", "nearby", "watch", "cuts", "tries", "growth", "id", "resumes", "secrets"]

_SHAPE = dict.fromkeys(["run", "code", "signal", "progress", "tries", "id", "resumes"], str)  # type: field_types.Shape
_SHAPE.update(dict.fromkeys(["command", "resume", "datasets", "patterns", "keep"], list))
_SHAPE.update(dict.fromkeys(["walltime", "grace"], field_types.NUMBER))
_SHAPE.update(variables=dict, jobs=int, watch=bool)


_ORIGIN = dict.fromkeys(Origin._fields, str)  # type: field_types.Shape
_ORIGIN.update(tags=list)
_RESOURCES = {
    "walltime": field_types.NUMBER,
    "gpus": int,
    "gpu_model": str,
    "nodes": int,
    "tasks": int,
    "cores": int,
    "memory": int,
    "exclusive": bool,
}  # type: field_types.Shape
_LONGEST = {"queue": str, "walltime": field_types.NUMBER}  # type: field_types.Shape
_REQUEST = {
    "account": str,
    "queue": str,
    "features": list,
    "mail": str,
    "native": list,
    "requeue": bool,
    "setup": list,
    "local": str,
    "unmet": list,
}  # type: field_types.Shape


class WrongFormat(Exception):
    """run.json was written by a newer rabaska."""


def to_json(plan: Plan) -> Dict[str, Any]:
    value = dict(plan._asdict())
    for name in _IN_ABOUT:
        del value[name]
    value["about"] = about(plan)
    value["datasets"] = [_dataset(dataset) for dataset in plan.datasets]
    value["launch"] = dict(plan.launch._asdict())
    value["nearby"] = dict(plan.nearby._asdict())
    value["cuts"] = [dict(cut._asdict()) for cut in plan.cuts]
    value["growth"] = dict(plan.growth._asdict())
    value["format"] = FORMAT
    return value


def _dataset(dataset: StagedData) -> Dict[str, str]:
    """Without a path where it has none: who reads the plan may not know of paths yet."""
    return {name: text for name, text in dataset._asdict().items() if name != "path" or text}


def about(plan: Plan) -> Dict[str, Any]:
    """The origin and the request of a run as one object, as run.json and reports hold it."""
    value = dict(plan.origin._asdict(), **plan.request._asdict())
    longest = plan.request.longest
    value["resources"] = dict(plan.request.resources._asdict())
    value["longest"] = dict(longest._asdict()) if longest.queue else None
    return value


def _origin(value: Dict[str, Any]) -> Origin:
    return Origin(**_fitting(value, _ORIGIN))


def _request(value: Dict[str, Any]) -> JobRequest:
    """What of it can be used: only a later submission needs all, and checks that it has it."""
    return JobRequest(
        resources=RequestedResources(**_fitting(value.get("resources"), _RESOURCES)),
        longest=LongestQueue(**_fitting(value.get("longest"), _LONGEST)),
        **_fitting(value, _REQUEST),
    )


def _fitting(value: Any, shape: field_types.Shape) -> Dict[str, Any]:
    """The fields of `value` that have the type they should have."""
    fields = value if isinstance(value, dict) else {}
    return {name: fields[name] for name in shape if isinstance(fields.get(name), shape[name])}


def dumps(plan: Plan) -> str:
    return json.dumps(to_json(plan), indent=1, sort_keys=True) + "\n"


def from_json(value: Dict[str, Any]) -> Plan:
    if value.get("format") != FORMAT:
        raise WrongFormat("run.json has format {}, not {}".format(value.get("format"), FORMAT))
    named = [name for name in Plan._fields if name not in _IN_ABOUT]
    known = [name for name in named if name in value or name not in _ADDED_LATER]
    fields = {name: files.native_value(value[name]) for name in known}
    if not isinstance(value["about"], dict):
        raise ValueError("`about` cannot be {!r}".format(value["about"]))
    fields["origin"], fields["request"] = _origin(value["about"]), _request(value["about"])
    fields["launch"] = Launch(**fields.get("launch", {}))
    fields["nearby"] = Nearby(**fields.get("nearby", {}))
    fields["cuts"] = [PlannedInterruption(**cut) for cut in fields.get("cuts", [])]
    fields["growth"] = Growth(**fields.get("growth", {}))
    fields["datasets"] = [StagedData(**dataset) for dataset in fields["datasets"]]
    wrong = field_types.misfit(
        fields, _SHAPE, [name for name in _SHAPE if name not in _ADDED_LATER]
    )
    if wrong:
        raise ValueError("`{}` cannot be {!r}".format(wrong, fields.get(wrong)))
    return Plan(**fields)


def load(run: RunFolder) -> Optional[Plan]:
    """The plan of `run`, with the patterns that its jobs found missing; None: there is none."""
    try:
        value = files.read_json(run.plan)
        if value is None and os.path.exists(run.plan):
            raise ValueError("it is not a JSON object")
        if value is None:
            return None
        found = from_json(value)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ValueError("run.json is damaged: {}: {}".format(type(problem).__name__, problem))
    missing = [one for one in learned_patterns.learned(run) if one not in found.patterns]
    return found._replace(patterns=found.patterns + missing) if found.patterns else found
