"""Explore: look at a cluster, write its profile, and hold a profile against the cluster."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rabaska import schedulers
from rabaska.domain.clusters import Cluster, ProfileFact
from rabaska.errors import WrongUse
from rabaska.node import files
from rabaska.records.home import Home
from rabaska.settings.profiles import load_cluster
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
