"""Visit: ask a cluster in one go how it is today, and remember what nobody had verified."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.seen import Seen, updated
from rabaska.domain.shellwords import expanding
from rabaska.errors import CommandFailed, Unreachable
from rabaska.journeys.station import place_of, seen
from rabaska.journeys.store import store_word
from rabaska.node.here.capacity import found_gpus
from rabaska.records import seen as records
from rabaska.records.home import Home
from rabaska.remote.place import Place
from rabaska.scouting import comparing, questions, sites
from rabaska.scouting.questions import Answer
from rabaska.scouting.sites import Site
from rabaska.settings.profile_files import profile_files


@dataclass(frozen=True)
class Visit:
    cluster: Cluster  # as it was seen, where its profile was silent or unsure
    answers: Mapping[str, Answer] = field(default_factory=dict)  # empty: it was not asked
    unasked: str = ""  # why only its profile speaks
    problem: Unreachable | None = None  # when it was to be asked, and could not be


def visit(
    cluster: Cluster, home: Home, more: Mapping[str, str] | None = None, *, offline: bool = False
) -> Visit:
    """What the site says to `more`, and at the first visit to all that is asked of a new one."""
    if cluster.is_here and cluster.scheduler == "local":
        return Visit(replace(cluster, partitions=_this_computer()))
    known = seen(cluster.name, home)
    more = {**of_nodes(cluster), **(more or {})}
    why = "the site was not asked" if offline else cluster.farewell
    if why:
        return Visit(updated(cluster, known), unasked=why)
    try:
        if known is None:
            answers = ask(place_of(cluster), {**of_profile(cluster), **more})
            known = remember(cluster, answers, home)
        else:
            answers = ask(place_of(cluster), more, usual=questions.TODAY)
            known = _with_news(known, cluster, sites.read(answers), home)
    except Unreachable as problem:
        return Visit(updated(cluster, known), unasked=problem.what, problem=problem)
    today = sites.read(answers)
    known = replace(known, partitions=today.partitions, accounts=today.accounts or ())
    return Visit(updated(cluster, known), answers)


def _this_computer() -> tuple[Partition, ...]:
    """What the embedded cluster runs jobs on, without a limit of its own: with its GPUs, or not."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    plain = Partition("here", cores=os.cpu_count() or 1, memory=memory, default=True)
    gpus = len(found_gpus())
    return (plain, replace(plain, name="gpus", gpus=gpus, default=False)) if gpus else (plain,)


def ask(
    place: Place, more: Mapping[str, str], usual: Mapping[str, str] = questions.QUESTIONS
) -> dict[str, Answer]:
    outcome = place.run(questions.script(more, usual))
    found = questions.answers(outcome.output)
    if not found:
        raise CommandFailed(
            "the cluster answered none of the questions",
            why=outcome.complaint,
            hint="does `bash` work there? rabaska needs it",
        )
    return found


def of_profile(cluster: Cluster) -> dict[str, str]:
    """Questions about what a profile claims."""
    asked = {
        "paths": questions.usable_paths(_paths(cluster)),
        "python": f"{expanding(cluster.python)} --version",
    }
    if cluster.quota:
        asked["quota"] = f"command -v {expanding(cluster.quota.split()[0])}"
    return asked


def of_nodes(cluster: Cluster) -> dict[str, str]:
    """The question for what a job found out, as long as that is not known."""
    if not cluster.wonders_about_internet:
        return {}
    return {questions.NODES_NAME: questions.nodes_question(store_word(cluster))}


def told_by_nodes(cluster: Cluster, answers: Mapping[str, Answer]) -> Cluster:
    found = sites.read(answers).internet
    return cluster if found is None else replace(cluster, internet=found)


def _with_news(known: Seen, cluster: Cluster, site: Site, home: Home) -> Seen:
    """What was known, and what a job has found out since; kept, if that is new."""
    if site.internet is None or site.internet == known.internet:
        return known
    facts = [fact for fact in known.facts if fact.key != "nodes.internet"]
    facts += comparing.internet(cluster.internet, site)
    found = replace(known, internet=site.internet, facts=tuple(facts))
    _keep(found, cluster, home)
    return found


def _paths(cluster: Cluster) -> list[tuple[str, str]]:
    # The store itself may not be there before the first run; what it lies in must.
    above = (cluster.store or "~/rabaska").rpartition("/")[0] or "/"
    named = [("storage.store", above)]
    named += [(f"storage.tiers.{name}", path) for name, path in cluster.tiers.items()]
    named += [(f"software.wheelhouse {place}", place) for place in cluster.wheelhouse]
    return [(key, expanding(path)) for key, path in named]


def remember(cluster: Cluster, answers: Mapping[str, Answer], home: Home) -> Seen:
    """Hold the profile against the answers, and keep what came of it."""
    site = sites.read(answers)
    before = seen(cluster.name, home)
    tried = site.internet if site.internet is not None or before is None else before.internet
    found = Seen(
        day=datetime.now(UTC).date().isoformat(),
        facts=tuple(comparing.compared(cluster, site, answers)),
        partitions=site.partitions,
        accounts=site.accounts or (),
        wheelhouse=site.wheelhouse,
        internet=tried,
    )
    _keep(found, cluster, home)
    return found


def _keep(found: Seen, cluster: Cluster, home: Home) -> None:
    profile = profile_files(home.profiles).get(cluster.name)
    if profile and home.folder.is_dir():
        records.keep(home.seen, profile, found)
