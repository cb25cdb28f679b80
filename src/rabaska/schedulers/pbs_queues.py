"""What `qstat -Q -f`, `pbsnodes -a` and `qstat -B -f` say of the queues of PBS, Torque and Moab."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rabaska.domain.clusters import Partition
from rabaska.schedulers.protocol import Answer
from rabaska.schedulers.queue_values import count, size, span, together

Attributes = Mapping[str, str]

_WHO = 'echo "@user $(id -un)"; echo "@groups $(id -Gn)"; '
QUESTIONS = {
    "queues": f"command -v pbsnodes >/dev/null && {{ {_WHO}qstat -Q -f; }}",
    "hosts": "pbsnodes -a",
    "server": "command -v pbsnodes >/dev/null && qstat -B -f",
}
VERSION_COMMANDS = ("qstat --version",)
VERSION = r"pbs_version = \S+|Version: \S+"
PROGRAMS = ("pbsnodes", "qmgr", "pbs_server")

# The name of a card, among the properties that a site gave its nodes.
_CARD = re.compile(r"(?:[kpvtalhb]|gtx|rtx|gh|gb|mi)[-_]?\d{2,4}[\w-]*", re.IGNORECASE | re.ASCII)
_MODEL = ("gpu_model", "gpu_type", "gputype")  # what sites call it; PBS has no word of its own


def is_pbs(versions: str) -> bool:
    """PBS Pro or OpenPBS, rather than Torque."""
    return re.search(r"pbs_version|PBSPro|OpenPBS", versions, re.IGNORECASE) is not None


def of_site(answer: Answer) -> tuple[Partition, ...]:
    return partitions(answer("queues"), answer("hosts"), answer("server"))


@dataclass(frozen=True)
class PbsNode:
    names: frozenset[str]  # its own, its properties, and the queue it is kept for
    kept_for: frozenset[str]  # queues; none: it serves all that keep no nodes
    cores: int
    memory: int  # bytes
    gpus: int
    gpu_model: str


def partitions(queues: str, nodes: str, server: str = "") -> tuple[Partition, ...]:
    """The queues that users may submit to; a queue that leads to others is as large as those."""
    attributes = dict(_blocks(queues, r"^Queue: *(\S+)[ \t\r]*$"))
    hosts = [_host(name, node) for name, node in _blocks(nodes, r"^(\S+)[ \t\r]*$")]
    kept = {queue for host in hosts for queue in host.kept_for}
    default = re.findall(r"^\s+default_queue = (\S+)", server, re.MULTILINE)
    by_name = {}
    for name, queue in attributes.items():
        serving = [host for host in hosts if _serves(host, name, queue, kept)]
        one = Partition(name, default=name in default)
        by_name[name] = _limited(_with_hosts(one, serving), queue, _mine(queues))
    by_name = {name: _routed(queue, attributes[name], by_name) for name, queue in by_name.items()}
    return tuple(
        queue for name, queue in by_name.items() if not _is(attributes[name], "from_route_only")
    )


def _blocks(text: str, heading: str) -> Iterator[tuple[str, Attributes]]:
    """Each heading at the left margin, and the `name = value` lines below it."""
    # A long value goes on in the next line, after a tab.
    text = text.replace("\r\n", "\n").replace("\n\t", "")
    starts = list(re.finditer(heading, text, re.MULTILINE))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=False):
        lines = re.findall(r"^[ \t]+([\w.]+) = (.*?)[ \t]*$", text[start.end() : end], re.MULTILINE)
        if lines:
            yield start[1], dict(lines)


def _host(name: str, node: Attributes) -> PbsNode:
    """A node of Torque (`np`, `gpus`, `properties`) or of PBS (`resources_available`)."""
    status = dict(re.findall(r"(\w+)=([^,]*)", node.get("status", "")))
    properties = [word.strip() for word in node.get("properties", "").split(",") if word.strip()]
    queues = _words(node.get("resources_available.Qlist", "")) | _words(node.get("queue", ""))
    models = [node[key] for word in _MODEL if (key := f"resources_available.{word}") in node]
    cards = [word for word in properties if _CARD.fullmatch(word)]
    gpus = count(node.get("gpus", "") or node.get("resources_available.ngpus", ""))
    return PbsNode(
        names=frozenset([name, *properties]),
        kept_for=frozenset(queues),
        cores=count(node.get("np", "") or node.get("resources_available.ncpus", "")),
        memory=size(status.get("physmem", "") or node.get("resources_available.mem", "")),
        gpus=gpus,
        gpu_model=next(iter([*models, *cards]), "") if gpus else "",
    )


def _words(text: str) -> set[str]:
    return {word for word in re.split(r"[\s,]+", text) if word}


def _serves(host: PbsNode, name: str, queue: Attributes, kept: set[str]) -> bool:
    """By PBS's `queue` or `Qlist` of the node, or by Torque's `neednodes` of the queue."""
    wanted = queue.get("default_chunk.Qlist") or name
    if wanted in kept or host.kept_for:
        return wanted in host.kept_for
    # `node1+node2`, or properties that a node must have together: `gpu:k80`.
    needed = queue.get("resources_default.neednodes", "").split("+")
    return any(set(wish.split(":")) - {""} <= host.names for wish in needed)


def _with_hosts(queue: Partition, hosts: Sequence[PbsNode]) -> Partition:
    for host in hosts:
        one = replace(
            queue,
            nodes=1,
            cores=host.cores,
            memory=host.memory,
            gpus=host.gpus,
            gpu_model=host.gpu_model,
        )
        queue = together(queue, one)
    return queue


def _limited(queue: Partition, attributes: Attributes, mine: set[str]) -> Partition:
    most_gpus = attributes.get("resources_max.ngpus", "") or attributes.get(
        "resources_max.gpus", ""
    )
    gpus = min(queue.gpus, count(most_gpus)) if most_gpus else queue.gpus
    # Of a whole job, and so of what it has of one node.
    most_cores = count(attributes.get("resources_max.ncpus", ""))
    most_memory = size(attributes.get("resources_max.mem", ""))
    return replace(
        queue,
        cores=min(queue.cores, most_cores or queue.cores),
        memory=min(queue.memory, most_memory or queue.memory),
        walltime=span(attributes.get("resources_max.walltime", "")),
        shortest=span(attributes.get("resources_min.walltime", "")),
        most_nodes=count(attributes.get("resources_max.nodect", "")),
        gpus=gpus,
        gpu_model=queue.gpu_model if gpus else "",
        without_gpus=gpus > 0 and not attributes.get("resources_min.ngpus"),
        on_request=_for_others(attributes, mine),
        closed=closed(attributes),
    )


def closed(queue: Attributes) -> str:
    """Why no job starts there now; a queue that is not started takes jobs all the same."""
    if queue.get("enabled") == "False":
        return "it takes no jobs: enabled = False"
    return "it starts no jobs: started = False" if queue.get("started") == "False" else ""


def _for_others(queue: Attributes, mine: set[str]) -> bool:
    """Whether a list says who may use it, and we are not in it."""
    lists = {"user": "acl_users", "group": "acl_groups"}
    closing = [key for who, key in lists.items() if _is(queue, f"acl_{who}_enable")]
    allowed = [{word.partition("@")[0] for word in _words(queue.get(key, ""))} for key in closing]
    return bool(mine) and any(not mine & names for names in allowed)


def _mine(text: str) -> set[str]:
    """The user and the groups that we are, as the question had them printed first."""
    return set(" ".join(re.findall(r"^@(?:user|groups) (.*)$", text, re.MULTILINE)).split())


def _routed(
    queue: Partition, attributes: Attributes, all_of_them: Mapping[str, Partition]
) -> Partition:
    """A queue that only leads to others: what the largest of them allows, unless it says less."""
    names = _words(attributes.get("route_destinations", ""))
    behind = [
        all_of_them[name]
        for destination in names
        if (name := destination.partition("@")[0]) in all_of_them
    ]
    if attributes.get("queue_type") != "Route" or not behind:
        return queue
    limits = [other.walltime for other in behind]
    longest = None if None in limits else max(limit for limit in limits if limit)
    best = max(behind, key=lambda other: other.gpus)
    return replace(
        queue,
        walltime=queue.walltime or longest,
        nodes=max(other.nodes for other in behind),
        cores=best.cores,
        memory=best.memory,
        gpus=best.gpus,
        gpu_model=best.gpu_model,
        cores_per_gpu=best.cores_per_gpu,
        memory_per_gpu=best.memory_per_gpu,
        without_gpus=any(other.takes(0) for other in behind) and best.gpus > 0,
    )


def _is(queue: Attributes, key: str) -> bool:
    return queue.get(key) == "True"
