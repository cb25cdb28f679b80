"""Explain: what a message or a run's failure means, and all that a site's support would ask for."""

import getpass
import json
import platform
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.domain.bottlenecks import bottlenecks
from rabaska.domain.run_measures import Bottleneck, measures
from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import NoSpace, WrongUse
from rabaska.knowledge.failures import KnownFailure, explain, nearest
from rabaska.knowledge.queue_reasons import reason_for
from rabaska.node import files
from rabaska.node.version import __version__
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, find, remembered
from rabaska.remote.place import quoted
from rabaska.steps.connect import cluster_named, connect_for
from rabaska.steps.explain_failure import of_run
from rabaska.steps.query_status import status
from rabaska.steps.run_identity import confirm

_IN_WORDS = {
    RunState.FINISHED: "It finished.",
    RunState.RUNNING: "It is running.",
    RunState.SUSPENDED: "Its scheduler stopped it, and will let it go on.",
    RunState.QUEUED: "It waits in the queue.",
    RunState.SUBMITTING: "It is being submitted.",
    RunState.STOPPING: "You cancelled it, and it is stopping.",
    RunState.CANCELLED: "You cancelled it.",
    RunState.GONE: "Its folder is gone.",
    RunState.UNKNOWN: "How it stands is not known.",
}
_TROUBLE = (RunState.FAILED, RunState.INTERRUPTED)
# Then a program or a scheduler said something; else the reason that we give ourselves says it all.
_SAID_SOMETHING = ("crashed", "staging failed")
_LOG_BYTES = 100_000  # the cause stands near the end


@dataclass(frozen=True)
class Explanation:
    """What is known about a text; `nearest` is filled only when nothing is."""

    text: str
    known: tuple[KnownFailure, ...] = ()
    nearest: tuple[KnownFailure, ...] = ()
    run: str = ""
    cluster: str = ""
    state: str = ""
    standing: str = ""  # how the run stands, in a sentence, where that says enough
    stands: RunStatus | None = None  # of a run

    @property
    def slow(self) -> tuple[Bottleneck, ...]:
        """What a run loses time with, the most costly first."""
        return bottlenecks(measures(self.stands)) if self.stands else ()


def explain_text(text: str, *, stage: str | None = None, scheduler: str = "") -> Explanation:
    """What `text` means; as it is, with the facts nearest to it, when nobody foresaw it."""
    if not text.strip():
        raise WrongUse("there is nothing to explain", hint="give the message, or `-` to read it")
    known = explain(text, stage=stage, scheduler=scheduler or None) or _waiting(text)
    return Explanation(text=text, known=known, nearest=() if known else nearest(text))


def _waiting(text: str) -> tuple[KnownFailure, ...]:
    """A single word is often what a queue gives as the reason of a job that waits."""
    word = text.strip().strip("()")
    reason = reason_for(word) if re.fullmatch(r"\*?\w+", word) else None
    if reason is None:
        return ()
    meaning = f"The job will never start. {reason.meaning}" if reason.never else reason.meaning
    return (KnownFailure(word, "pending", meaning, reason.fix, word),)


def run_meant(words: str, home: Home) -> RunRecord | None:
    """The run that `words` name; None when they are a message."""
    known = [record.name for record in remembered(home.runs)]
    if not re.fullmatch(r"[\w-]+", words) or not any(name.startswith(words) for name in known):
        return None
    return find(home.runs, words)


def explain_run(record: RunRecord, home: Home) -> Explanation:
    """What a run's records, its queue and the end of its log tell about how it stands."""
    confirm(record, connect_for(record, home))
    stands = status(record, home)
    text = "\n".join(part for part in (_end_of_log(stands, record, home), _told(stands)) if part)
    found = Explanation(text or stands.state.value)
    if stands.state in _TROUBLE:
        scheduler = cluster_named(record.cluster, home).scheduler
        found = explain_text(found.text, stage="run", scheduler=scheduler)
    known = of_run(found.known, record.name, record.cluster, stands.about)
    known = _as_status_says(stands, known)
    standing = "" if known or _is_unforeseen(stands) else in_words(stands)
    return replace(
        found,
        known=known,
        nearest=() if known or standing else found.nearest,
        run=record.name,
        cluster=record.cluster,
        state=stands.state.value,
        standing=standing,
        stands=stands,
    )


def _as_status_says(stands: RunStatus, known: tuple[KnownFailure, ...]) -> tuple[KnownFailure, ...]:
    """What `status` says of the run first: it reads fewer lines of the log."""
    if stands.is_recognised:
        meaning = f"{stands.reason[:1].upper()}{stands.reason[1:]}."
        line = known[0].line if known else stands.reason
        return (KnownFailure(stands.jobs[-1].how, "run", meaning, stands.hint, line),)
    said = [meaning for meaning, _ in stands.explanations]
    first = [each for each in known if each.meaning in said]
    first.sort(key=lambda each: said.index(each.meaning))
    if not known:
        first = [
            KnownFailure("run", "run", meaning, fix, stands.reason)
            for meaning, fix in stands.explanations
        ]
    return (*first, *(each for each in known if each not in first))


def in_words(stands: RunStatus) -> str:
    """How a run stands, its reason and what to do, in as many lines."""
    said = _IN_WORDS.get(stands.state, "")
    told_already = stands.reason.lower() in said.lower()
    reason = "" if told_already else f"{stands.reason[:1].upper()}{stands.reason[1:]}."
    fix = stands.hint and f"fix: {stands.hint}"
    nothing = [problem for problem in stands.problems if problem.startswith("finished without")]
    noted = [f"warning: {problem}" for problem in nothing]
    return "\n".join(part for part in (said, reason, *noted, fix) if part)


def _is_unforeseen(stands: RunStatus) -> bool:
    """Whether it failed with a message that is not ours, and that nobody explained."""
    last = stands.jobs[-1].how if stands.jobs else ""
    refused = stands.reason.startswith("the cluster refused it")
    return stands.state in _TROUBLE and (last in _SAID_SOMETHING or refused)


def _told(stands: RunStatus) -> str:
    reasons = [stands.reason, *(job.reason for job in stands.jobs), *stands.problems]
    return "\n".join(dict.fromkeys(reason for reason in reasons if reason))


def _end_of_log(stands: RunStatus, record: RunRecord, home: Home) -> str:
    """What the last job printed, and what its scheduler caught of it.

    The newest file of all may be another's: of a job that was queued behind, and had nothing to do.
    """
    last = stands.jobs[-1] if stands.jobs else None
    names = [f"scheduler-{last.id}.out", f"job-{last.number:03d}.log"] if last else []
    wanted = quoted(names) if names else "$(ls -t | head -n 1)"
    folder = quoted([f"{record.path}/logs"])
    script = f'cd {folder} && for log in {wanted}; do tail -c {_LOG_BYTES} "$log"; done 2>/dev/null'
    return connect_for(record, home).place.run(script).output


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
    cluster = connect_for(record, home)
    found = {}
    for name in ("job.sh", "run.json", "submissions.jsonl", "events.jsonl"):
        outcome = cluster.place.run(f"cat {quoted([f'{record.path}/{name}'])}")
        if outcome.exit_code == 0:
            found[name] = outcome.output
    jobs = f"cd {quoted([f'{record.path}/jobs'])} && cat */begun.json */ended.json"
    found["jobs.txt"] = cluster.place.run(jobs).output
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
    return "\n".join(
        [
            "# Request for support",
            "",
            *lines,
            "",
            "## What was printed",
            "",
            "```text",
            exact,
            "```",
            "",
            "## Beside this file",
            "",
            *beside,
            "",
        ]
    )


def _jobs(attached: dict[str, str], record: RunRecord) -> list[str]:
    told = [each.get("id") for each in _json_lines(attached.get("jobs.txt", ""))]
    return list(dict.fromkeys(str(one) for one in (record.job_id, *told) if one))


def _nodes(attached: dict[str, str]) -> list[str]:
    told = [each.get("host") for each in _json_lines(attached.get("jobs.txt", ""))]
    return list(dict.fromkeys(str(host) for host in told if host))


def _json_lines(text: str) -> list[dict[str, object]]:
    """Every JSON object in a text of several; what is no JSON is passed over."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
