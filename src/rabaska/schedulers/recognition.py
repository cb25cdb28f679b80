"""Which scheduler a site has: what all of them ask, and the one that answers."""

import re
from collections.abc import Iterable, Iterator

from rabaska.domain.clusters import Cluster, ProfileFact, SiteScheduler
from rabaska.schedulers import SCHEDULERS, named
from rabaska.schedulers.protocol import Answer, Scheduler, SiteQueries

PROGRAMS, VERSIONS = "programs", "schedulers"  # the names of two questions


def programs() -> tuple[str, ...]:
    """What is looked for; the question is called PROGRAMS, and answered by a name on each line."""
    return _once(name for _, site in _all() for name in site.programs)


def local_variables() -> tuple[str, ...]:
    return _once(name for _, site in _all() for name in site.local_variables)


def questions() -> dict[str, str]:
    """What is asked of a new site: shell words by name."""
    versions = _once(command for _, site in _all() for command in site.version_commands)
    asked = {VERSIONS: "; ".join([*versions, "true"]), **questions_today()}
    for _, site in _all():
        asked |= site.first_questions
    return asked


def questions_today() -> dict[str, str]:
    """What may have changed since."""
    return {name: words for _, site in _all() for name, words in site.questions.items()}


def recognised(answer: Answer) -> SiteScheduler:
    """The scheduler of a site, by what it answered.

    Programs that are installed and serve nothing prove nothing: the one that answers is meant.
    """
    found, versions = set(answer(PROGRAMS).split()), answer(VERSIONS)
    there = [name for name, site in _all() if site.is_there(found, versions)]
    queues = {name: partitions for name, site in _all() if (partitions := site.partitions(answer))}
    answering = [name for name in there if name in queues]
    name = next(iter([*answering, *there, *queues]), "local")
    site = dict(_all())[name]
    return SiteScheduler(
        name=name,
        version=_version(site, versions),
        partitions=queues.get(name) or next(iter(queues.values()), ()),
        accounts=site.accounts(answer) or None,
        limits=site.limits(answer),
        local_variables=site.local_variables,
    )


def compared(cluster: Cluster, version: str) -> tuple[ProfileFact, ...]:
    """What the version of a site's scheduler says to the profile."""
    known = dict(_all()).get(cluster.scheduler)
    return tuple(known.compare(cluster, version)) if known else ()


def _version(site: SiteQueries, versions: str) -> str:
    found = (
        re.search(site.version, versions, re.IGNORECASE | re.MULTILINE) if site.version else None
    )
    return found[0] if found else ""


def _all() -> Iterator[tuple[str, SiteQueries]]:
    for name in SCHEDULERS:
        yield name, _scheduler(name).site


def _scheduler(name: str) -> Scheduler:
    return named(name, program=(), queue="")


def _once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
