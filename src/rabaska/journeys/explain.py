"""Explain: what a message or a run's failure means, and all that a site's support would ask for."""

import getpass
import json
import platform
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.domain.runs import RunStatus
from rabaska.errors import NoSpace, WrongUse
from rabaska.journeys.station import cluster_named, station_of
from rabaska.journeys.status import status
from rabaska.knowledge.failures import Failure, explain, nearest
from rabaska.knowledge.waiting import waiting_for
from rabaska.node import files
from rabaska.node.version import __version__
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord, find, remembered
from rabaska.remote.place import quoted

_LOG_BYTES = 100_000  # the cause stands near the end


@dataclass(frozen=True)
class Explanation:
    """What is known about a text; `nearest` is filled only when nothing is."""

    text: str
    known: tuple[Failure, ...] = ()
    nearest: tuple[Failure, ...] = ()
    run: str = ""
    cluster: str = ""
    state: str = ""


def explain_text(text: str, *, stage: str | None = None, scheduler: str = "") -> Explanation:
    """What `text` means; as it is, with the facts nearest to it, when nobody foresaw it."""
    if not text.strip():
        raise WrongUse("there is nothing to explain", hint="give the message, or `-` to read it")
    known = explain(text, stage=stage, scheduler=scheduler or None) or _waiting(text)
    return Explanation(text=text, known=known, nearest=() if known else nearest(text))


def _waiting(text: str) -> tuple[Failure, ...]:
    """A single word is often what a queue gives as the reason of a job that waits."""
    word = text.strip().strip("()")
    reason = waiting_for(word) if re.fullmatch(r"\w+", word) else None
    if reason is None:
        return ()
    meaning = f"The job will never start. {reason.meaning}" if reason.never else reason.meaning
    return (Failure(word, "pending", meaning, reason.fix, word),)


def run_meant(words: str, home: Home) -> RunRecord | None:
    """The run that `words` name; None when they are a message."""
    known = [record.name for record in remembered(home.runs)]
    if not re.fullmatch(r"[\w-]+", words) or not any(name.startswith(words) for name in known):
        return None
    return find(home.runs, words)


def explain_run(record: RunRecord, home: Home) -> Explanation:
    """What a run's records, its queue and the end of its log tell about how it stands."""
    stands = status(record, home)
    scheduler = cluster_named(record.cluster, home).scheduler
    text = "\n".join(part for part in (_end_of_log(record, home), _told(stands)) if part)
    found = explain_text(text or stands.state.value, stage="run", scheduler=scheduler)
    known = found.known or tuple(
        Failure("run", "run", meaning, fix, stands.reason) for meaning, fix in stands.explanations
    )
    return replace(
        found, known=known, nearest=() if known else found.nearest, run=record.name,
        cluster=record.cluster, state=stands.state.value,
    )  # fmt: skip


def _told(stands: RunStatus) -> str:
    reasons = [stands.reason, *(link.reason for link in stands.links), *stands.problems]
    return "\n".join(dict.fromkeys(reason for reason in reasons if reason))


def _end_of_log(record: RunRecord, home: Home) -> str:
    folder = quoted([f"{record.path}/logs"])
    script = f"cd {folder} && tail -c {_LOG_BYTES} $(ls -t | head -n 2) 2>/dev/null"
    return station_of(record, home).place.run(script).output


def support_bundle(
    told: Explanation, folder: Path, home: Home, record: RunRecord | None = None
) -> tuple[Path, ...]:
    """Write what a site's support asks for into `folder`; nothing is sent to anybody."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {"message.txt": told.text, **(_of_run(record, home) if record else {})}
        wanted["request.md"] = _request(told, wanted, home, record)
        for name, content in wanted.items():
            files.write_whole(str(folder / name), content)
    except OSError as problem:
        raise NoSpace(f"no bundle could be written to {folder}", why=str(problem)) from problem
    return tuple(folder / name for name in wanted)


def _of_run(record: RunRecord, home: Home) -> dict[str, str]:
    """The script that was submitted, its plan, the jobs it became and how they ended."""
    there = station_of(record, home)
    found = {}
    for name in ("job.sh", "run.json", "jobs.jsonl", "events.jsonl"):
        outcome = there.place.run(f"cat {quoted([f'{record.path}/{name}'])}")
        if outcome.exit_code == 0:
            found[name] = outcome.output
    links = f"cd {quoted([f'{record.path}/links'])} && cat */begun.json */ended.json"
    found["links.txt"] = there.place.run(links).output
    return found


def _request(
    told: Explanation, attached: dict[str, str], home: Home, record: RunRecord | None
) -> str:
    rows = {"User": getpass.getuser(), "Date": time.strftime("%Y-%m-%d %H:%M %Z")}
    if record:
        rows |= {
            "Cluster": f"{record.cluster} ({cluster_named(record.cluster, home).host or 'here'})",
            "Run": f"{record.name}, {told.state}",
            "Jobs": ", ".join(_jobs(attached, record)) or "none was accepted",
            "Nodes": ", ".join(_nodes(attached)) or "none began",
            "Folder": record.path,
        }
    rows["Sent with"] = f"rabaska {__version__}, Python {platform.python_version()}"
    lines = [f"- {name}: {value}" for name, value in rows.items()]
    exact = "\n".join(told.text.strip().splitlines()[-40:])
    beside = [f"- {name}" for name in attached]
    return "\n".join([
        "# Request for support", "", *lines, "", "## What was printed", "", "```text", exact,
        "```", "", "## Beside this file", "", *beside, "",
    ])  # fmt: skip


def _jobs(attached: dict[str, str], record: RunRecord) -> list[str]:
    told = [each.get("job") for each in _json_lines(attached.get("links.txt", ""))]
    return list(dict.fromkeys(str(job) for job in (record.job, *told) if job))


def _nodes(attached: dict[str, str]) -> list[str]:
    told = [each.get("host") for each in _json_lines(attached.get("links.txt", ""))]
    return list(dict.fromkeys(str(host) for host in told if host))


def _json_lines(text: str) -> list[dict[str, object]]:
    """Every JSON object in a text of several; what is no JSON is passed over."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
