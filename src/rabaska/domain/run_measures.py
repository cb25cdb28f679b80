"""What was measured of a run's last minutes, in the form that the rules of `bottlenecks` take."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rabaska.domain.jobs import Rank
from rabaska.domain.runs import RunStatus

_GPU = re.compile(r"(gpu\d+) (.+)")


@dataclass(frozen=True)
class Gpu:
    node: str
    name: str  # gpu0
    use: float | None = None  # share of the time in which anything ran on it
    clock: float | None = None  # MHz
    top_clock: float | None = None
    power: float | None = None  # W
    temperature: float | None = None  # °C
    throttled: float = 0.0  # share of the looks
    reasons: dict[str, float] = field(default_factory=dict)  # heat, power supply …: shares
    errors: float = 0.0
    memory: float = 0.0  # share of its own


@dataclass(frozen=True)
class Measures:
    """Shares are of the time of the program's first process, unless something else is said."""

    seconds: float = 0.0  # that were observed, of the training
    each: float = 0.0  # seconds for a step
    waiting: float = 0.0
    starting: float = 0.0  # of the waiting: workers were started
    fetching: float = 0.0  # without workers: data was decoded by the program itself
    saving: float = 0.0
    validating: float = 0.0
    logging: float = 0.0
    saves: int = 0
    workers: int | None = None
    batch_size: int | None = None
    cores: int = 0  # that the job has on each node
    cores_used: float | None = None
    cores_lacked: float = 0.0  # that its processes could have used besides
    cores_of_workers: float = 0.0
    workers_lacked: float = 0.0  # cores that these could have used besides
    workers_seen: float = 0.0
    workers_blocked: float = 0.0  # workers that wait for storage
    bytes_read: float = 0.0  # a second
    swap_used: float = 0.0  # bytes
    swapped_in: float = 0.0  # bytes a second
    memory_used: float = 0.0
    memory_limit: float = 0.0
    gpus: tuple[Gpu, ...] = ()
    gpus_asked: int = 0  # on each node
    processes: int = 1  # that train together on each node
    ranks: tuple[Rank, ...] = ()
    command: tuple[str, ...] = ()
    cluster: str = ""


def measures(run: RunStatus) -> Measures:
    """Of the node whose workers do most, where there are several: that one is waited for."""
    asked = run.about.get("resources")
    asked = asked if isinstance(asked, dict) else {}
    speed = run.speed
    node = max(run.vitals.values(), key=lambda one: one.get("cores used", 0.0), default={})
    shares = speed.shares if speed else {}
    used = [job.used.cores for job in run.jobs if job.used and job.used.cores]
    tasks = int(asked.get("tasks") or 1)
    cores = (
        int(asked.get("cores") or 0) * tasks
        or int(node.get("cores granted", 0))
        or max(used, default=0)
    )
    return Measures(
        seconds=speed.seconds if speed else 0.0,
        each=speed.seconds_per_step if speed else 0.0,
        waiting=speed.waiting if speed else 0.0,
        starting=shares.get("starting", 0.0),
        fetching=shares.get("fetching", 0.0),
        saving=shares.get("saving", 0.0),
        validating=shares.get("validating", 0.0),
        logging=shares.get("logging", 0.0),
        saves=speed.saves_lately if speed else 0,
        workers=speed.workers if speed else None,
        batch_size=speed.batch_size if speed else None,
        cores=cores,
        cores_used=node.get("cores used"),
        cores_lacked=node.get("cores lacked", 0.0),
        cores_of_workers=node.get("cores of workers", 0.0),
        workers_lacked=node.get("cores workers lacked", 0.0),
        workers_seen=node.get("workers", 0.0),
        workers_blocked=node.get("workers waiting for storage", 0.0),
        bytes_read=node.get("bytes read", 0.0),
        swap_used=max((one.get("swap used", 0.0) for one in run.vitals.values()), default=0.0),
        swapped_in=max(
            (one.get("bytes swapped in", 0.0) for one in run.vitals.values()), default=0.0
        ),
        memory_used=node.get("memory used", 0.0),
        memory_limit=node.get("memory limit", 0.0),
        gpus=tuple(_gpus(run)),
        gpus_asked=int(asked.get("gpus") or 0),
        processes=tasks,
        ranks=run.ranks,
        command=run.command,
        cluster=run.cluster,
    )


def _gpus(run: RunStatus) -> Iterator[Gpu]:
    for node, means in run.vitals.items():
        found: dict[str, dict[str, float]] = {}
        for name, value in means.items():
            if known := _GPU.fullmatch(name):
                found.setdefault(known[1], {})[known[2]] = value
        for name in sorted(found, key=lambda one: int(one[3:])):
            yield _gpu(node, name, found[name])


def _gpu(node: str, name: str, told: dict[str, float]) -> Gpu:
    by = "throttled by "
    return Gpu(
        node,
        name,
        use=told.get("use"),
        clock=told.get("clock"),
        top_clock=told.get("top clock"),
        power=told.get("power"),
        temperature=told.get("temperature"),
        throttled=told.get("throttled", 0.0),
        reasons={what[len(by) :]: share for what, share in told.items() if what.startswith(by)},
        errors=told.get("errors", 0.0),
        memory=told.get("memory", 0.0) / told["memory limit"] if told.get("memory limit") else 0.0,
    )


@dataclass(frozen=True)
class Bottleneck:
    """What a training loses time with."""

    kind: str  # too few workers, decoding, storage, …
    what: str
    evidence: str
    remedy: str  # a line to change
    lost: float  # share of the time
    gain: float | None = None  # times as fast; None: nobody can say


def times_faster(share: float) -> float:
    """Times as fast without this share of the time."""
    return 1.0 / max(0.05, 1.0 - share)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
