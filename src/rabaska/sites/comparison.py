"""A profile held against a site, line by line: ok, differs, or cannot be told."""

import re
from collections.abc import Iterable, Iterator, Mapping

from rabaska.domain.amounts import write_duration
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


def _same(key: str, says: str, found: str) -> ProfileFact:
    return ProfileFact(key, says, OK if says == found else DIFFERS, found)


def _python(command: str, answer: SiteAnswer) -> ProfileFact:
    version = re.search(r"Python (\d+)\.(\d+)\S*", answer.text)
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
        found = usable.get(key, "")
        verdict = OK if found in wanted else DIFFERS if found else UNTOLD
        words = {"written": "can be written to", "read": "can be read", "missing": "is not there"}
        yield ProfileFact(key.split()[0], path, verdict, words.get(found, ""))
    if cluster.local_space:
        yield ProfileFact("storage.local", cluster.local_space, UNTOLD, "exists only inside a job")
    if cluster.quota:
        there = answers.get("quota", NO_ANSWER)
        yield ProfileFact("storage.quota", cluster.quota, OK if there.ok else DIFFERS, there.text)


def _modules(names: tuple[str, ...], site: Site) -> Iterator[ProfileFact]:
    for name in names:
        if site.modules is None:
            yield ProfileFact("software.modules", name, UNTOLD, "the site lists no modules")
            continue
        there = [each for each in site.modules if each == name or each.startswith(f"{name}/")]
        near = [each for each in site.modules if each.split("/")[0] == name.split("/")[0]]
        found = ", ".join(there or near) or "no such module"
        yield ProfileFact("software.modules", name, OK if there else DIFFERS, found)


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
    there = {each.name: each for each in site.partitions}
    # Where a table tells of a kind of node, there is no queue of its name to look for.
    says = tuple(each for each in says if each.called == each.name)
    for each in says:
        key = f"partitions.{each.name}"
        if not site.partitions:
            yield ProfileFact(key, "", UNTOLD, "the site lists no partitions")
        elif each.name not in there:
            yield ProfileFact(key, "", DIFFERS, "no such partition")
        else:
            yield from _partition(key, _facts(each), _facts(there[each.name]))
    for name in there.keys() - {each.name for each in says}:
        if says:
            yield ProfileFact(f"partitions.{name}", "", DIFFERS, "new: it is not in the profile")


def _partition(key: str, says: dict[str, str], found: dict[str, str]) -> Iterator[ProfileFact]:
    for fact, value in says.items():
        if value:
            yield _same(f"{key}.{fact}", value, found[fact] or "no limit")


def _facts(each: Partition) -> dict[str, str]:
    """As the profile spells them; what it leaves out is not claimed."""
    return {
        "walltime": write_duration(each.walltime) if each.walltime else "",
        "nodes": str(each.nodes or ""),
        "cores": str(each.cores or ""),
        "memory": f"{each.memory // 2**20} MiB" if each.memory else "",
        "gpus": str(each.gpus or ""),
        "gpu_model": each.gpu_model,
        "default": "true" if each.default else "",
    }
