"""Checks of what a cluster itself said when it was asked: accounts, queues, room, groups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rabaska.checkup import check_imports, check_software
from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject
from rabaska.domain.amounts import say_count, say_size
from rabaska.domain.job_request import plain_accounts
from rabaska.domain.jobs import TrialAnswer
from rabaska.domain.queue_limits import cluster_line
from rabaska.domain.shell_words import expanding
from rabaska.domain.untrusted import count
from rabaska.knowledge.failures import explain
from rabaska.node.data.free_space import Room, read_quota
from rabaska.sites.questions import NO_ANSWER, SiteAnswer

_FEW_FILES = 1000  # a run makes some dozens, an environment built once some thousands
_ALMOST_FULL = 0.95
_STATES_OF_QUEUES = ("up", "down", "drain", "inact")  # as sinfo spells them


# Processes that have our output open and are neither this shell nor what it was started by. Links
# are compared by a pattern, in which brackets would mean something else.
_LEFTOVER = r"""
own=" "; p=$$; while [ "${p:-0}" -gt 1 ]; do own="$own$p "; p=$(ps -o ppid= -p $p | tr -d ' '); done
line=$(readlink /proc/$$/fd/1 | sed 's/[][]/\\&/g')
case $line in pipe:*|socket:*) ;; *) exit 0 ;; esac
for found in $(find /proc/[0-9]*/fd/1 -lname "$line" 2>/dev/null); do
  p=${found#/proc/}; p=${p%%/*}
  case $own in *" $p "*) continue ;; esac
  [ "$(ps -o pgid= -p $p | tr -d ' ')" = "$(ps -o pgid= -p $$ | tr -d ' ')" ] && continue
  ps -o args= -p $p
done; true
"""


@dataclass(frozen=True)
class SiteAnswers:
    """What came back: to each question its answer, and what became of the job shown."""

    answers: Mapping[str, SiteAnswer]
    trial: TrialAnswer

    def to(self, question: str) -> str:
        """The answer; nothing when the command failed, whose complaint is no answer."""
        answer = self.answers.get(question, NO_ANSWER)
        return answer.text if answer.ok else ""


def questions(subject: Subject) -> dict[str, str]:
    """What is asked for the checks below; each question stands alone."""
    cluster = subject.cluster
    store = expanding(cluster.store or "~/rabaska")
    nearest = f'f={store}; while [ ! -e "$f" ]; do f=$(dirname "$f"); done; '
    commands = {
        "store": f'{nearest}echo "$f"; if [ -w "$f" ]; then echo writable; fi',
        "bytes": f'{nearest}df -Pk "$f" | tail -n 1',
        "files": f'{nearest}df -Pi "$f" | tail -n 1',
        "limits": f'{nearest}quota -w -p -f "$f" 2>/dev/null; lfs quota -q -u "$(id -u)" "$f" '
        '2>/dev/null; lfs quota -q -g "$(stat -c %g "$f")" "$f" 2>/dev/null; true',
        "group": f'{nearest}stat -c %G "$f"; id -gn',
        "leftover": _LEFTOVER,
        "purge": 'cat "/scratch/to_delete/$USER" 2>/dev/null | head -n 5',
        **check_software.questions(subject),
        **check_imports.question(subject),
    }
    if cluster.scheduler == "slurm" and subject.project.queue:
        queue = expanding(subject.project.queue)
        commands["queue"] = f"sinfo --noheader --partition={queue} --format='%a'"
    if cluster.submit_from:
        only = expanding(cluster.submit_from)
        commands["logs"] = (
            f'{nearest}case "$f/" in {only}/*) echo inside ;; *) echo outside ;; esac'
        )
    if cluster.quota:
        commands["quota-report"] = f'{nearest}cd "$f"; {cluster.quota}'
    return commands


def checks(subject: Subject, answers: SiteAnswers) -> Iterator[Finding]:
    yield from _refused(subject, answers.trial)
    yield from _accounts(subject, answers.to("accounts").split())
    yield from _queue(subject, answers.to("queue").split())
    yield from check_software.missing_program(subject, answers.to("program"))
    yield from check_imports.missing(subject, answers.to(check_imports.QUESTION))
    yield from check_software.missing_wheels(subject, answers.to("wheels"))
    yield from check_software.many_files(subject, answers.to("environment"))
    yield from _store(answers.to("store"))
    yield from _logs(subject, answers.to("logs"))
    yield from _room(subject, answers)
    yield from _limits(subject, answers.to("limits"))
    yield from _group(subject, answers.to("group").split())
    yield from _leftover(subject, answers.to("leftover"))
    yield from check_software.python_only(subject, answers.to("compiled"))
    yield from _purge(subject, answers.to("purge"))
    yield from _quota(subject, answers.to("quota-report"))


def _refused(subject: Subject, trial: TrialAnswer) -> Iterator[Finding]:
    """The scheduler was shown the very job that `run` would submit."""
    if not trial.refusal:
        return
    scheduler, name = subject.cluster.scheduler, subject.cluster.name
    explanations = explain(trial.refusal, stage="submit", scheduler=scheduler, cluster=name)
    meaning = f": {explanations[0].meaning.rstrip('.')}" if explanations else ""
    yield Finding(
        "cluster.refused",
        f"{name} would refuse the job{meaning}",
        f"--on {name}",
        f"its scheduler says: {trial.refusal}",
        explanations[0].fix
        if explanations
        else "`rabaska run --dry-run` prints the job that it refused",
    )


def _accounts(subject: Subject, theirs: list[str]) -> Iterator[Finding]:
    plain, account = plain_accounts(theirs), subject.project.account
    if account and theirs and account not in (*plain, *theirs):
        yield Finding(
            "cluster.account",
            f"you have no account `{account}` on {subject.cluster.name}",
            f"account for {subject.cluster.name}",
            "jobs for other accounts are refused",
            f"yours are {', '.join(plain)}: write {_account_line(subject, plain[0])}",
        )


def _account_line(subject: Subject, account: str) -> str:
    return cluster_line("account", account, subject.project, subject.cluster.name)


def _queue(subject: Subject, words: list[str]) -> Iterator[Finding]:
    states = [word for word in words if word in _STATES_OF_QUEUES]
    if states and "up" not in states:
        yield Finding(
            "cluster.down",
            f"the queue {subject.project.queue} is {states[0]}",
            f"queue for {subject.cluster.name}",
            "its jobs wait until the site opens it again",
            "check the site's status page, or choose another queue",
            serious=False,
        )


def _store(output: str) -> Iterator[Finding]:
    folder, _, answer = output.strip().partition("\n")
    if folder.startswith("/") and answer != "writable":
        yield Finding(
            "cluster.store",
            f"{folder} is not writable",
            "[storage] store of the profile",
            "packs, runs and environments are stored there",
            "name another folder in the profile, or ask the site",
        )


def _logs(subject: Subject, output: str) -> Iterator[Finding]:
    cluster = subject.cluster
    if output.strip() == "outside":
        yield Finding(
            "cluster.logs",
            f"the job logs would be outside {cluster.submit_from}",
            "[storage] store of the profile",
            f"{cluster.name} accepts jobs only from there: its nodes cannot write elsewhere",
            f"name a folder below {cluster.submit_from}",
        )


def _room(subject: Subject, answers: SiteAnswers) -> Iterator[Finding]:
    free = _column(answers.to("bytes"), 3) * 1024
    wanted = _wanted(subject)
    if free and wanted > free:
        yield Finding(
            "cluster.room",
            f"the data ({say_size(wanted)}) does not fit there",
            "[data]",
            f"{say_size(free)} free in the store",
            "free some space: `rabaska clean`",
        )
    used, left = _column(answers.to("files"), 2), _column(answers.to("files"), 3)
    if used and used > _ALMOST_FULL * (used + left):
        yield Finding(
            "cluster.files",
            f"the file system has room for only {say_count(left, 'more file')}",
            "store",
            f"it has {say_count(used, 'file')} already",
            "delete or pack small files; rabaska needs few",
            serious=left < _FEW_FILES,
        )


def _wanted(subject: Subject) -> int:
    return sum(contents.size for contents in subject.contents.values())


def _column(line: str, number: int) -> int:
    """A number of df's table; 0 where it has none, as for files on some file systems."""
    cells = line.split()
    return (count(cells[number]) or 0) if len(cells) > number else 0


def _limits(subject: Subject, output: str) -> Iterator[Finding]:
    """The quota itself, in bytes and in files, where a common command tells it."""
    for room in read_quota("quota", output):
        least = _wanted(subject) if room.unit == "bytes" else _FEW_FILES
        if room.free < least or room.free == 0:
            yield Finding(
                f"cluster.quota-{room.unit}",
                f"your quota leaves {_amount(room)}",
                "store",
                f"packs and runs are stored there, and need {_amount(room._replace(free=least))}",
                "delete what you no longer need (`rabaska clean`), or ask the site for more",
            )


def _amount(room: Room) -> str:
    return say_size(room.free) if room.unit == "bytes" else say_count(room.free, "file")


def _group(subject: Subject, groups: list[str]) -> Iterator[Finding]:
    shared = [tier for tier in subject.cluster.storage if tier.scope == "group" and tier.path]
    inside = any(subject.cluster.store.startswith(tier.path) for tier in shared)
    if inside and len(groups) == 2 and groups[0] == groups[1]:
        yield Finding(
            "cluster.group",
            f"the store belongs to your own group, {groups[0]}",
            "store",
            "the quota of shared space depends on the group, and your own group has almost none",
            "`chgrp` it to the project's group, and `chmod g+s`",
            serious=False,
        )


def _leftover(subject: Subject, listed: str) -> Iterator[Finding]:
    left = sorted(set(listed.strip().splitlines()))
    if left:
        yield Finding(
            "cluster.leftover",
            f"a startup file leaves a process running: `{left[0].strip()}`",
            f"~/.bashrc or ~/.bash_profile on {subject.cluster.name}",
            "it keeps the output of every command open: rabaska waits for it a moment, rsync and "
            "other programs for as long as it runs",
            "start it as `command >/dev/null 2>&1 </dev/null &`, and only in terminals: after "
            "`[[ $- == *i* ]] || return`",
            serious=False,
        )


def _purge(subject: Subject, listed: str) -> Iterator[Finding]:
    if listed:
        yield Finding(
            "cluster.purge",
            f"{subject.cluster.name} will soon delete your files",
            "/scratch/to_delete",
            f"the list begins with {listed.splitlines()[0]}",
            "fetch what you need; packs can be sent again",
            serious=False,
        )


def _quota(subject: Subject, output: str) -> Iterator[Finding]:
    failures = (
        [failure for failure in explain(output, stage="data") if failure.id == "quota"]
        if output
        else []
    )
    for failure in failures:
        yield Finding(
            "cluster.quota",
            failure.meaning,
            f"`{subject.cluster.quota}`",
            failure.line,
            failure.fix,
        )
