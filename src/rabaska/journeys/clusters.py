"""Explore: look at a cluster, write its profile, and hold a profile against the cluster."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rabaska import schedulers
from rabaska.domain.clusters import Cluster, ProfileFact
from rabaska.errors import RabaskaError, WrongUse
from rabaska.node import files
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, forget, remembered
from rabaska.settings.profile_files import profile_files
from rabaska.settings.profiles import load_cluster, unknown
from rabaska.sites import profile_text, questions
from rabaska.sites.questions import SiteAnswer
from rabaska.sites.site_facts import Site
from rabaska.steps.connect import place_of
from rabaska.steps.probe_site import (
    ask_site,
    keep_observations,
    node_questions,
    profile_questions,
    read_site,
)
from rabaska.steps.query_status import statuses
from rabaska.steps.trial_jobs import probe as run_probe

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


@dataclass(frozen=True)
class Added:
    """A new profile, and what it was written from."""

    cluster: Cluster
    file: Path
    site: Site
    notes: tuple[str, ...]


def add(
    name: str,
    host: str,
    home: Home,
    *,
    options: tuple[str, ...] = (),
    account: str = "",
    probe: bool = False,
    force: bool = False,
) -> Added:
    """Look at `host` and write `<home>/clusters/NAME.toml`; never over one that is there."""
    file = home.profiles / f"{name}.toml"
    _refuse(name, host, options, file, force=force)
    cluster = Cluster(name, _title(name), "", host=host, ssh_options=options)
    answers = ask_site(place_of(cluster), {})
    site = read_site(answers)
    if probe and site.scheduler in schedulers.SCHEDULERS:
        known = replace(cluster, scheduler=site.scheduler, partitions=site.partitions)
        answers |= run_probe(known, account)
        site = read_site(answers)
    today = datetime.now(UTC).date().isoformat()
    cluster = replace(
        cluster, scheduler=site.scheduler, source=f"rabaska inspected {host}", checked=today
    )
    home.profiles.mkdir(parents=True, exist_ok=True)
    files.write_whole(str(file), profile_text.text(cluster, site))
    written = load_cluster(name, user_profiles=home.profiles)
    said = answers.get(questions.PROBE_NAME)
    return Added(written, file, site, tuple(_notes(site, said)))


def _refuse(name: str, host: str, options: tuple[str, ...], file: Path, *, force: bool) -> None:
    if not _NAME.fullmatch(name) or name == "here":
        why = "that is this computer" if name == "here" else "it becomes the name of a file"
        hint = "use letters, digits, dots, dashes and underscores"
        raise WrongUse(f"a cluster cannot be called `{name}`", why=why, hint=hint)
    # What ssh and a profile can hold: neither bytes that are no text, nor control characters.
    if not host or host.startswith("-") or re.search(r"\s", host) or not host.isprintable():
        raise WrongUse(
            f"`{host}` is no host", hint="write user@login.site.org, or a Host of ~/.ssh/config"
        )
    unfit = [option for option in options if not option.isprintable()]
    if unfit:
        raise WrongUse(f"`{unfit[0]}` is no option for ssh", why="it holds bytes that are no text")
    if file.exists() and not force:
        raise WrongUse(
            f"there is a profile {file} already",
            hint=f"`rabaska clusters check {name}` compares it with the site; "
            "`--force` writes it again",
        )


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def _notes(site: Site, probed: SiteAnswer | None) -> list[str]:
    """What a newcomer should see to before the first run."""
    notes = []
    if site.scheduler not in schedulers.SCHEDULERS:
        notes.append(f"rabaska does not speak to {site.scheduler} yet")
    if not site.python:
        notes.append("no Python 3.6 or newer was seen; name one under `python`, or a module")
    if site.accounts and len(site.accounts) > 1:
        notes.append(f"name the account that pays in rabaska.toml: {', '.join(site.accounts)}")
    if probed and site.internet is None:
        said = " ".join(probed.text.split()) or "nothing"
        notes.append(
            "the job that tries the internet did not run; "
            f"try again with --account; the scheduler said: {said}"
        )
    return notes


def check(name: str, home: Home, *, probe: bool = False, account: str = "") -> list[ProfileFact]:
    """Hold every line of a profile against what the cluster says now, and remember it."""
    cluster = load_cluster(name, user_profiles=home.profiles)
    more = {**profile_questions(cluster), **node_questions(cluster)}
    answers = ask_site(place_of(cluster), more)
    if probe:
        answers |= run_probe(cluster, account)
    return list(keep_observations(cluster, answers, home).facts)


@dataclass(frozen=True)
class Removed:
    """A profile that was deleted."""

    name: str
    file: Path
    built_in: bool  # whether a profile of that name that comes with rabaska holds now
    forgotten: tuple[str, ...]  # runs there, which the list no longer has


def remove(name: str, home: Home, *, force: bool = False) -> Removed:
    """Delete a profile of the user's, and drop runs that nothing could reach any more.

    WrongUse while a run there is not over, or nobody can tell; unless `force`.
    """
    file, built_in = _own_profile(name, home)
    runs = [record for record in remembered(home.runs) if record.cluster == name]
    if runs and not force:
        _refuse_active(name, runs, home)
    file.unlink()
    if not built_in:
        for record in runs:
            forget(home.runs, record)
    gone = () if built_in else tuple(record.name for record in runs)
    return Removed(name, file, built_in, gone)


def _own_profile(name: str, home: Home) -> tuple[Path, bool]:
    """The user's own profile of that name, and whether rabaska brings one as well."""
    known, built_in = profile_files(home.profiles), profile_files(None)
    if name not in known:
        raise unknown(name, known)
    if known[name].parent != home.profiles:
        raise WrongUse(
            f"{name} cannot be removed",
            why="its profile comes with rabaska",
            hint=f"`rabaska clusters edit {name}` makes a copy of your own",
        )
    return known[name], name in built_in


def _refuse_active(name: str, runs: Sequence[RunRecord], home: Home) -> None:
    hint = f"`rabaska clusters remove {name} --force` removes the profile all the same"
    try:
        told = statuses(runs, home, explained=False)
    except RabaskaError as problem:
        raise WrongUse(
            f"whether runs on {name} are over could not be found out", why=problem.what, hint=hint
        ) from problem
    active = [f"{run.name} ({run.state.value})" for run in told if not run.state.over]
    if active:
        raise WrongUse(
            f"runs on {name} are not over: {', '.join(active)}",
            why="nothing could follow, fetch or cancel them without its profile",
            hint=f"`rabaska cancel` ends them; {hint}",
        )
