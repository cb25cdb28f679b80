"""A profile held against a site, line by line: ok, differs, or cannot be told."""

import re
from collections.abc import Iterable, Iterator, Mapping

from rabaska.domain.amounts import write_duration, write_memory
from rabaska.domain.clusters import Cluster, Partition, ProfileFact
from rabaska.sites.questions import NO_ANSWER, SiteAnswer, pairs
from rabaska.sites.site_facts import Site

OK = "ok"
DIFFERS = "differs"
UNTOLD = "cannot be told"


def compared(
    cluster: Cluster,
    site: Site,
    answers: Mapping[str, SiteAnswer],
    of_scheduler: Iterable[ProfileFact] = (),
) -> list[ProfileFact]:
    """Every key that can be compared, with what the site's scheduler has to say to it."""
    return [
        ProfileFact(
            "reach.host", cluster.host, OK if answers else UNTOLD, "it answers" if answers else ""
        ),
        _same("scheduler", cluster.scheduler, site.scheduler),
        _python(cluster.python, answers.get("python", NO_ANSWER)),
        *_storage(cluster, answers),
        *_modules(cluster.modules, site),
        *_accounts(cluster.accounts, site),
        *internet(cluster.internet, site),
        *of_scheduler,
        *_partitions(cluster.partitions, site),
    ]


def _same(key: str, says: str, answer: str) -> ProfileFact:
    return ProfileFact(key, says, OK if says == answer else DIFFERS, answer)


def _python(command: str, answer: SiteAnswer) -> ProfileFact:
    version = re.search(r"Python (\d{1,9})\.(\d{1,9})\S*", answer.text)
    if not version:
        return ProfileFact("python", command, DIFFERS, answer.text.strip() or "it does not start")
    able = (int(version[1]), int(version[2])) >= (3, 6)
    return ProfileFact("python", command, OK if able else DIFFERS, version[0])


def _storage(cluster: Cluster, answers: Mapping[str, SiteAnswer]) -> Iterator[ProfileFact]:
    usable = pairs(answers.get("paths", NO_ANSWER).text)
    says = {
        "storage.store": cluster.store or "~/rabaska",
        **{f"storage.tiers.{name}": path for name, path in cluster.tiers.items()},
        **{f"software.wheelhouse {place}": place for place in cluster.wheelhouse},
    }
    for key, path in says.items():
        wanted = ("written", "read") if "wheelhouse" in key else ("written",)
        usable_as = usable.get(key, "")
        verdict = OK if usable_as in wanted else DIFFERS if usable_as else UNTOLD
        words = {"written": "can be written to", "read": "can be read", "missing": "is not there"}
        yield ProfileFact(key.split()[0], path, verdict, words.get(usable_as, ""))
    if cluster.local_space:
        yield ProfileFact("storage.local", cluster.local_space, UNTOLD, "exists only inside a job")
    if cluster.quota:
        quota = answers.get("quota", NO_ANSWER)
        yield ProfileFact("storage.quota", cluster.quota, OK if quota.ok else DIFFERS, quota.text)


def _modules(names: tuple[str, ...], site: Site) -> Iterator[ProfileFact]:
    for name in names:
        if site.modules is None:
            yield ProfileFact("software.modules", name, UNTOLD, "the site lists no modules")
            continue
        same = [
            module for module in site.modules if module == name or module.startswith(f"{name}/")
        ]
        near = [module for module in site.modules if module.split("/")[0] == name.split("/")[0]]
        listed = ", ".join(same or near) or "no such module"
        yield ProfileFact("software.modules", name, OK if same else DIFFERS, listed)


def _accounts(names: tuple[str, ...], site: Site) -> Iterator[ProfileFact]:
    for name in names:
        if site.accounts is None:
            yield ProfileFact("accounts", name, UNTOLD, "the site tells no accounts")
        else:
            verdict = OK if name in site.accounts else DIFFERS
            yield ProfileFact("accounts", name, verdict, ", ".join(site.accounts))


def internet(says: bool | None, site: Site) -> Iterator[ProfileFact]:
    if says is None:
        return
    if site.internet is None:
        yield ProfileFact("nodes.internet", _claim(says), UNTOLD, "the first run there tries it")
    else:
        yield _same("nodes.internet", _claim(says), _claim(site.internet))


def _claim(value: bool) -> str:
    return str(value).lower()


def _partitions(says: tuple[Partition, ...], site: Site) -> Iterator[ProfileFact]:
    observed = {partition.name: partition for partition in site.partitions}
    # Where a table tells of a kind of node, there is no queue of its name to look for.
    says = tuple(partition for partition in says if partition.called == partition.name)
    for partition in says:
        key = f"partitions.{partition.name}"
        if not site.partitions:
            yield ProfileFact(key, "", UNTOLD, "the site lists no partitions")
        elif partition.name not in observed:
            yield ProfileFact(key, "", DIFFERS, "no such partition")
        else:
            yield from _partition(key, _facts(partition), _facts(observed[partition.name]))
    for name in observed.keys() - {partition.name for partition in says}:
        if says:
            yield ProfileFact(f"partitions.{name}", "", DIFFERS, "new: it is not in the profile")


def _partition(key: str, says: dict[str, str], observed: dict[str, str]) -> Iterator[ProfileFact]:
    for fact, value in says.items():
        if value:
            yield _same(f"{key}.{fact}", value, observed[fact] or "no limit")


def _facts(partition: Partition) -> dict[str, str]:
    """As the profile spells them; what it leaves out is not claimed."""
    return {
        "walltime": write_duration(partition.walltime) if partition.walltime else "",
        "nodes": str(partition.nodes or ""),
        "cores": str(partition.cores or ""),
        "memory": write_memory(partition.memory) if partition.memory else "",
        "gpus": str(partition.gpus or ""),
        "gpu_model": partition.gpu_model,
        "default": "true" if partition.default else "",
    }
