"""What `qconf`, `qhost` and `qstat` say of Grid Engine's queues, hosts and those who wait."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rabaska.domain.clusters import Partition
from rabaska.schedulers.queue_values import count, span, together, whole_mebibytes

QUESTIONS = {
    "grid_queues": "set -o pipefail; "
    'qconf -sql | while read -r each; do qconf -sq "$each" && echo; done',
    "grid_hosts": "qhost -q -xml && "
    'qconf -sel | while read -r each; do qconf -se "$each" && echo; done',
}

QSTAT = 'qstat -xml -u "${USER:-$(id -un)}"'
# Everybody's jobs that wait, in their order, are asked for if one of the user's waits.
STATUS = (
    f"told=$({QSTAT}) || exit; "
    """printf '%s\n' "$told"; """
    """case $told in *'<state>qw<'*) qstat -s p -u '*' """
    """| awk '$5 == "qw" {print "next " $1}';; esac"""
    "; true"
)
_NEXT = re.compile(r"^next (\d+)$", re.MULTILINE | re.ASCII)

_HOST = re.compile(r"<host name='([^']+)'>(.*?)</host>", re.DOTALL)
_VALUE = re.compile(r"<hostvalue name='(\w+)'>([^<]*)</hostvalue>")
_QUEUE = re.compile(r"<queue name='([^']+)'>(.*?)</queue>", re.DOTALL)
_OF_QUEUE = re.compile(r"name='(\w+)'>([^<]*)<")
# Counted resources that sites define for cards; Grid Engine has none of its own.
_GPUS = re.compile(r"(?:^|,)(?:gpu|gpus|ngpus|gpu_card|cuda)=(\d{1,4})", re.IGNORECASE)
_SIZES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def line(output: str) -> dict[str, int]:
    """The place in the line of each job that waits, by its number."""
    jobs = dict.fromkeys(_NEXT.findall(output))
    return {job: place for place, job in enumerate(jobs, 1)}


def partitions(queues: str, hosts: str) -> tuple[Partition, ...]:
    told = {each["qname"]: each for each in _blocks(queues) if "qname" in each}
    cards = {
        each["hostname"]: _gpus(each.get("complex_values", ""))
        for each in _blocks(hosts)
        if "hostname" in each
    }
    found: dict[str, Partition] = {}
    closed: dict[str, list[str]] = {}
    for host, text in _HOST.findall(hosts):
        one = _host(host, text, cards.get(host, 0))
        for name, values in _QUEUE.findall(text):
            of_queue = dict(_OF_QUEUE.findall(values))
            gpus = _gpus(told.get(name, {}).get("complex_values", ""))
            slots = count(of_queue.get("slots", ""))
            mine = replace(one, name=name, cores=slots or one.cores, gpus=one.gpus or gpus)
            found[name] = together(found[name], mine) if name in found else mine
            closed.setdefault(name, []).append(_closed(of_queue.get("state_string", "").strip()))
    alone = len(told) == 1
    return tuple(
        replace(
            found.get(name, Partition(name)),
            walltime=span(queue.get("h_rt", "")),
            default=alone,
            without_gpus=name in found and found[name].gpus > 0,
            closed=closed[name][0] if all(closed.get(name, [""])) else "",
        )
        for name, queue in told.items()
    )


def _blocks(text: str) -> Iterator[Mapping[str, str]]:
    """What stands between empty lines: a name and its value on each; a backslash goes on."""
    text = re.sub(r"\\\s*\n\s*", "", text.replace("\r\n", "\n"))
    for block in re.split(r"\n\s*\n", text):
        yield dict(re.findall(r"^(\w+)[ \t]+(\S.*?)[ \t]*$", block, re.MULTILINE))


def _host(name: str, text: str, gpus: int) -> Partition:
    values = dict(_VALUE.findall(text))
    return Partition(
        name,
        nodes=1,
        cores=count(values.get("num_proc", "")),
        memory=_size(values.get("mem_total", "")),
        gpus=gpus,
    )


def _gpus(complexes: str) -> int:
    found = _GPUS.search(complexes.replace(" ", ""))
    return int(found[1]) if found else 0


def _size(text: str) -> int:
    """`23.5G` in bytes."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([KMGT]?)", text.strip())
    return whole_mebibytes(round(float(found[1]) * _SIZES.get(found[2], 1))) if found else 0


def _closed(letters: str) -> str:
    """By the letters of qstat(1): disabled, suspended, alarm of unreachable, error."""
    states = {"d": "disabled", "s": "suspended", "u": "not reached", "E": "in error"}
    return next(
        (f"its state is {letters}: {states[each]}" for each in letters if each in states), ""
    )
