"""Probe a site: ask a cluster in one go how it is today, and remember what was not verified."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rabaska.domain.clusters import Cluster, Observations, Partition, updated
from rabaska.domain.shell_words import expanding
from rabaska.errors import CommandFailed, Unreachable
from rabaska.node.here.slots import found_gpus
from rabaska.records import caches as records
from rabaska.records.home import Home
from rabaska.remote.place import Place
from rabaska.schedulers import recognition
from rabaska.settings.profile_files import profile_files
from rabaska.sites import comparison, questions, site_facts
from rabaska.sites.questions import SiteAnswer
from rabaska.sites.site_facts import Site
from rabaska.steps.connect import observations_of, place_of
from rabaska.steps.progress import Reporter
from rabaska.steps.store import store_word


@dataclass(frozen=True)
class SiteProbe:
    cluster: Cluster  # as it was seen, where its profile was silent or unsure
    answers: Mapping[str, SiteAnswer] = field(default_factory=dict)  # empty: it was not asked
    unasked: str = ""  # why only its profile speaks
    problem: Unreachable | None = None  # when it was to be asked, and could not be


def probe_site(
    cluster: Cluster, home: Home, more: Mapping[str, str] | None = None, *, offline: bool = False
) -> SiteProbe:
    """What the site says to `more`, and at the first visit to all that is asked of a new one."""
    if cluster.is_here and cluster.scheduler == "local":
        return SiteProbe(replace(cluster, partitions=_this_computer()))
    known = observations_of(cluster.name, home)
    more = {**node_questions(cluster), **(more or {})}
    why = "the site was not asked" if offline else cluster.retirement
    if why:
        return SiteProbe(updated(cluster, known), unasked=why)
    try:
        if known is None:
            answers = ask_site(place_of(cluster), {**profile_questions(cluster), **more})
            known = keep_observations(cluster, answers, home)
        else:
            answers = ask_site(place_of(cluster), more, usual=recognition.questions_today())
            known = _with_news(known, cluster, read_site(answers), home)
    except Unreachable as problem:
        return SiteProbe(updated(cluster, known), unasked=problem.what, problem=problem)
    today = read_site(answers)
    known = replace(known, partitions=today.partitions, accounts=today.accounts or ())
    return SiteProbe(_with_disks(updated(cluster, known), answers), answers)


def compare_profile(
    cluster: Cluster, place: Place, home: Home, reporter: Reporter
) -> Observations | None:
    """What the cluster shows at first use; where its profile differs from that, it is reported."""
    try:
        answers = ask_site(place, {**profile_questions(cluster), **node_questions(cluster)})
    except Unreachable:
        return None  # whoever connects next says so
    observed = keep_observations(cluster, answers, home)
    for fact in observed.facts:
        if fact.verdict == "differs":
            says = f"{fact.key} is {fact.says or 'not'} in the profile of {cluster.name}"
            reporter.warn(f"{says}, and the cluster says: {fact.found}")
    return observed


def _this_computer() -> tuple[Partition, ...]:
    """What the embedded cluster runs jobs on, without a limit of its own: with its GPUs, or not."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    plain = Partition("here", cores=os.cpu_count() or 1, memory=memory, default=True)
    gpus = len(found_gpus())
    return (plain, replace(plain, name="gpus", gpus=gpus, default=False)) if gpus else (plain,)


def site_questions() -> dict[str, str]:
    """All that is asked of a new site."""
    return {
        "variables": questions.variables_question(recognition.local_variables()),
        recognition.PROGRAMS: questions.programs_question(recognition.programs()),
        **recognition.questions(),
        **questions.QUESTIONS,
    }


def read_site(answers: Mapping[str, SiteAnswer]) -> Site:
    found = recognition.recognised(lambda name: site_facts.answered(answers, name))
    return site_facts.read(answers, found)


def ask_site(
    place: Place, more: Mapping[str, str], usual: Mapping[str, str] | None = None
) -> dict[str, SiteAnswer]:
    """The answers to `more`, and to the `usual` questions: those to a new site."""
    asked = {**(site_questions() if usual is None else usual), **more}
    outcome = place.run(questions.script(asked))
    found = questions.answers(outcome.output)
    if not found:
        raise CommandFailed(
            "the cluster answered none of the questions",
            why=outcome.complaint,
            hint="does `bash` work there? rabaska needs it",
        )
    return found


def profile_questions(cluster: Cluster) -> dict[str, str]:
    """Questions about what a profile claims."""
    asked = {
        "paths": questions.usable_paths(_paths(cluster)),
        "python": f"{expanding(cluster.python)} --version",
    }
    if cluster.quota:
        asked["quota"] = f"command -v {expanding(cluster.quota.split()[0])}"
    return asked


def node_questions(cluster: Cluster) -> dict[str, str]:
    """The questions for what jobs found out of their nodes, as far as that is not known."""
    if cluster.is_here:
        return {}
    store = store_word(cluster)
    asked = {questions.DISKS_NAME: questions.disks_question(store)}
    if cluster.internet_is_unsure:
        asked[questions.NODES_NAME] = questions.nodes_question(store)
    return asked


def with_node_answers(cluster: Cluster, answers: Mapping[str, SiteAnswer]) -> Cluster:
    found = read_site(answers).internet
    cluster = cluster if found is None else replace(cluster, internet=found)
    return _with_disks(cluster, answers)


def _with_disks(cluster: Cluster, answers: Mapping[str, SiteAnswer]) -> Cluster:
    found = site_facts.disks(site_facts.answered(answers, questions.DISKS_NAME))
    return replace(cluster, disks=found) if found else cluster


def _with_news(known: Observations, cluster: Cluster, site: Site, home: Home) -> Observations:
    """What was known, and what a job has found out since; kept, if that is new."""
    if site.internet is None or site.internet == known.internet:
        return known
    facts = [fact for fact in known.facts if fact.key != "nodes.internet"]
    facts += comparison.internet(cluster.internet, site)
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


def keep_observations(
    cluster: Cluster, answers: Mapping[str, SiteAnswer], home: Home
) -> Observations:
    """Hold the profile against the answers, and keep what came of it."""
    site = read_site(answers)
    before = observations_of(cluster.name, home)
    tried = site.internet if site.internet is not None or before is None else before.internet
    of_scheduler = recognition.compared(cluster, site.version)
    found = Observations(
        day=datetime.now(UTC).date().isoformat(),
        facts=tuple(comparison.compared(cluster, site, answers, of_scheduler)),
        partitions=site.partitions,
        accounts=site.accounts or (),
        wheelhouse=site.wheelhouse,
        internet=tried,
    )
    _keep(found, cluster, home)
    return found


def _keep(found: Observations, cluster: Cluster, home: Home) -> None:
    profile = profile_files(home.profiles).get(cluster.name)
    if profile and home.folder.is_dir():
        records.cache_observations(home.seen, profile, found)
