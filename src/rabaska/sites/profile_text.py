"""The text of a cluster profile: what a site showed, with a word on each line for its reader."""

import re
from collections.abc import Iterator

from rabaska.domain.amounts import write_duration, write_memory
from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.toml_text import quoted
from rabaska.sites.site_facts import Site

_PLACES = ("SCRATCH", "WORK", "STORE", "PROJECT")  # the best place for our own folder first
_LOCAL = ("LSCRATCH",)
_MANY_MODULES = 400  # beyond this a list helps nobody


def text(cluster: Cluster, site: Site) -> str:
    """A commented profile that can be loaded as it is."""
    parts = [
        _head(cluster, site),
        _reach(cluster),
        _storage(site),
        _software(site),
        _nodes(site),
        _partitions(site),
    ]
    # What a site said stays in its line: another one could name a program that ssh starts.
    lines = [[line.replace("\n", " ") for line in part] for part in parts]
    written = "\n\n".join("\n".join(part) for part in lines if part) + "\n"
    # In strings they are spelled out; a comment may not hold them at all.
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", written)


def _head(cluster: Cluster, site: Site) -> Iterator[str]:
    yield "# Written by `rabaska clusters add` from what the site said; edit it as you like."
    yield f"# `rabaska clusters check {cluster.name}` compares it with the site again."
    yield f"title = {quoted(cluster.title)}"
    if site.version:
        yield f"# It calls itself {site.version}."
    yield f"scheduler = {quoted(site.scheduler)}"
    seen = ", ".join(f"{name} ({version})" for name, version in site.pythons.items())
    yield f"# What runs rabaska's own part there: 3.6 or newer. Seen: {seen or 'none'}."
    yield f"python = {quoted(site.python or 'python3')}"
    yield f"source = {quoted(cluster.source)}"
    yield f"checked = {quoted(cluster.checked)}"
    if site.accounts:
        yield "# Which of them pays is for `account` in a project's [cluster.NAME] to say."
        yield f"accounts = {_listed(site.accounts)}"
    for name, value in site.limits.items():
        yield f"# {name} = {value}"


def _reach(cluster: Cluster) -> Iterator[str]:
    if not cluster.host:
        return
    yield "[reach]"
    yield f"host = {quoted(cluster.host)}"
    yield '# transfer = "…"  # the host for large transfers, if the site has one'
    if cluster.ssh_options:
        yield f"options = {_listed(cluster.ssh_options)}"


def _storage(site: Site) -> Iterator[str]:
    places = [name for name in _PLACES if name in site.variables]
    yield "[storage]"
    yield "# Where packs, runs and environments are kept. Sites empty their scratch now and then."
    yield f"store = {quoted(f'${places[0]}/rabaska' if places else '~/rabaska')}"
    given, names = {**site.variables, **site.in_job}, (*site.local_variables, *_LOCAL)
    local = next((name for name in names if name in given), "")
    if local:
        yield "# Each job's own space on its node."
        yield f"local = {quoted(f'${local}')}"
    if site.quota:
        yield f"quota = {quoted(site.quota)}"
    if places:
        yield "[storage.tiers]"
    for name in places:
        yield f"{name.lower()} = {quoted(f'${name}')}  # {site.variables[name]}"


def _software(site: Site) -> Iterator[str]:
    yield "[software]"
    names = site.modules or ()
    pythons = [name for name in names if name.split("/")[0].lower() in ("python", "anaconda3")]
    if names and len(names) <= _MANY_MODULES:
        yield from _comment(f"Modules seen: {', '.join(names)}")
    elif names:
        yield f"# {len(names)} modules seen; those of Python: {', '.join(pythons) or 'none'}"
    yield "# Loaded before every environment, before the `modules` of a project."
    yield "modules = []"
    yield "# Folders of wheels that the site keeps for `pip install --no-index`."
    yield f"wheelhouse = {_listed(site.wheelhouse)}"


def _nodes(site: Site) -> Iterator[str]:
    yield "[nodes]"
    if site.internet is None:
        yield "# Whether compute nodes reach the internet; the first run tries it, `--probe` now."
        yield "# internet = false"
    else:
        yield "# Tried with a job of one minute."
        yield f"internet = {str(site.internet).lower()}"


def _partitions(site: Site) -> Iterator[str]:
    for number, partition in enumerate(site.partitions):
        yield from ([""] if number else [])
        yield f"[partitions.{quoted(partition.name)}]"
        yield from _partition(partition)


def _partition(partition: Partition) -> Iterator[str]:
    if partition.queue is not None:
        yield f"queue = {quoted(partition.queue)}"
    if partition.walltime:
        yield f"walltime = {quoted(write_duration(partition.walltime))}"
    if partition.shortest:
        yield f"shortest = {quoted(write_duration(partition.shortest))}"
    counts = (
        ("nodes", partition.nodes),
        ("most_nodes", partition.most_nodes),
        ("cores", partition.cores),
    )
    for key, count in counts:
        if count:
            yield f"{key} = {count}"
    if partition.memory >= 10**6:
        yield f"memory = {quoted(write_memory(partition.memory))}"
    if partition.gpus:
        yield f"gpus = {partition.gpus}"
    if partition.cores_per_gpu:
        yield f"cores_per_gpu = {partition.cores_per_gpu}"
    if partition.memory_per_gpu >= 10**6:
        yield f"memory_per_gpu = {quoted(write_memory(partition.memory_per_gpu))}"
    if partition.gpu_model:
        yield f"gpu_model = {quoted(partition.gpu_model)}"
    if partition.on_request:
        yield "on_request = true"
    if partition.without_gpus:
        yield "without_gpus = true"
    if partition.default:
        yield "default = true"
    if partition.closed:
        yield f"# When it was inspected, {partition.closed}"


def _listed(words: tuple[str, ...]) -> str:
    return f"[{', '.join(quoted(word) for word in words)}]"


def _comment(sentence: str) -> Iterator[str]:
    line = "#"
    for word in sentence.split():
        if len(line) + len(word) > 96:
            yield line
            line = "#"
        line += f" {word}"
    yield line
