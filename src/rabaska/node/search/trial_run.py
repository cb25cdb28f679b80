"""The run that a trial is: its folder made from the plan of the search, its end made a result."""

import json
import os
import re
import time
import uuid
from typing import Any, Dict, List, Optional, Tuple

from .. import files, partial_folder
from ..login.create_run import lead_to_carried
from ..record import chain_rule, jobs, plan, resume_evidence
from ..record.plan import Plan
from ..record.run_folder import TRIAL, RunFolder
from . import metric, values_file
from . import study as studies
from .study import Settings, Study, Trial

TOKEN = "rabaska-trial-run"  # stands for the run's name in what the search was given
_PARAMETERS = "params"  # the file with its values, before its suffix
_CURVE = 60  # points of its reports that a result keeps
_LAST_LINE = 300  # characters


def words_of(
    settings: Settings, values: Dict[str, Any], file: str
) -> Tuple[List[str], Dict[str, str]]:
    """How values reach the program: words for its command, and variables."""
    words: List[str] = []
    variables: Dict[str, str] = {}
    styles = settings.spelled
    if any(style[0] == "file" for style in styles.values()):
        words += [next(style[1] for style in styles.values() if style[0] == "file"), file]
    for name, value in values.items():
        style, word = styles.get(name, ["option", "--" + name])
        if style == "environment":
            variables[word] = as_text(value)
        elif style == "option":
            words += [word, _literal(value)]
        elif style in ("joined", "override"):
            words.append("{}={}".format(word, _literal(value)))
        elif style == "flag" and value:
            words.append(word)
    return words, variables


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _literal(value: Any) -> str:
    """A brace is no placeholder."""
    return as_text(value).replace("{", "{{").replace("}", "}}")


def plan_of(study: Study, settings: Settings, trial: Trial) -> Plan:
    """The plan of the trial's run."""
    run = study.run(trial.number)
    text = json.dumps(settings.plan).replace(TOKEN, run.name)
    made = plan.from_json(json.loads(text))
    words, variables = words_of(
        settings, trial.values, os.path.join(run.path, _file_name(settings))
    )
    note = "trial {} of {}: {}".format(trial.number, study.name, shown(trial.values))
    return made._replace(
        command=list(made.command) + words,
        variables=dict(made.variables, **variables),
        origin=made.origin._replace(note=note, tags=[study.name]),
        id=uuid.uuid4().hex,
    )


def shown(values: Dict[str, Any]) -> str:
    return " ".join("{}={}".format(name, as_text(value)) for name, value in values.items())


def make(study: Study, settings: Settings, trial: Trial) -> RunFolder:
    """Its run folder, which may be there already; complete or not at all."""
    run = study.run(trial.number)
    if os.path.exists(run.plan):
        return run
    parent = os.path.dirname(run.path)
    os.makedirs(parent, exist_ok=True)
    new = partial_folder.begin(parent, run.name)
    try:
        _fill(RunFolder(new.path), study, settings, trial)
    except BaseException:
        partial_folder.abandon(new)
        raise
    partial_folder.finish(new, run.path, durable=False)
    return run


def _fill(new: RunFolder, study: Study, settings: Settings, trial: Trial) -> None:
    for folder in ("logs", "jobs", "carried/000/output", "carried/000/checkpoints"):
        os.makedirs(os.path.join(new.path, folder))
    lead_to_carried(new)
    made = plan_of(study, settings, trial)
    _write(new.plan, plan.dumps(made))
    about = {"search": study.name, "trial": trial.number, "values": trial.values}
    if trial.repeats:
        about["repeats"] = trial.repeats
    _write(os.path.join(new.path, _file_name(settings)), _file(study, settings, trial))
    _write(os.path.join(new.path, TRIAL), files.to_json(about) + "\n")
    for name in ("job.sh", "job-more.sh"):
        text = _text(os.path.join(study.path, "trial-" + name))
        if text:
            _write(os.path.join(new.path, name), text.replace(TOKEN, study.run(trial.number).name))
    secrets = _text(os.path.join(study.path, "secrets.json"))
    if secrets:
        _write(new.secrets, secrets, 0o600)


def _file_name(settings: Settings) -> str:
    return _PARAMETERS + (os.path.splitext(settings.base)[1] or ".json")


def _file(study: Study, settings: Settings, trial: Trial) -> str:
    """Its values alone, or the file that the program usually reads with these in their places."""
    if not settings.base:
        return values_file.alone(trial.values)
    text = _text(os.path.join(study.path, settings.base))
    return values_file.changed(settings.base, text, trial.values)


def _write(path: str, text: str, mode: int = 0o666) -> None:
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(made, "wb") as stream:
        stream.write(text.encode("utf-8"))


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except OSError:
        return ""


def result_of(
    settings: Settings, trial: Trial, run: RunFolder, run_plan: Plan, reports: metric.Reports
) -> Optional[files.Json]:
    """How the trial ended; None while there is more to do."""
    if os.path.exists(run.stop) and not os.path.exists(run.done):
        return None
    verdict = resume_evidence.verdict_on(run, run_plan)
    values = reports.read()
    if verdict.decision == chain_rule.FINISHED:
        value, missing = metric.value_of(values, settings.take, settings.better)
        if not settings.metric:
            return dict(_result(run, studies.FINISHED, None, "", []), told=reports.last)
        if value is not None:
            return _result(run, studies.FINISHED, value, "", values)
        return dict(
            _result(run, studies.FAILED, None, _never(missing, settings, reports), values),
            cause=missing,
            names=sorted(reports.names),
        )
    if verdict.decision == chain_rule.GIVE_UP:
        why, cause = _failure(run, verdict)
        return dict(_result(run, studies.FAILED, None, why, values), cause=cause)
    return None


def pruned(settings: Settings, run: RunFolder, why: str, values: List[float]) -> files.Json:
    value, _ = metric.value_of(values, settings.take, settings.better)
    return _result(run, studies.PRUNED, value, why, values)


def _result(
    run: RunFolder, state: str, value: Optional[float], why: str, values: List[float]
) -> files.Json:
    return {
        "state": state,
        "value": value,
        "why": why,
        "reports": len(values),
        "curve": _thinned(values),
        "seconds": _seconds(run),
        "jobs": len(run.jobs()),
        "ended": time.time(),
    }


def _never(missing: str, settings: Settings, reports: metric.Reports) -> str:
    if "never" not in missing:
        return missing
    told = ", ".join(sorted(reports.names)) or "no number that looks like a metric"
    return "it never reported {}; it reported {}".format(settings.metric, told)


def _failure(run: RunFolder, verdict: chain_rule.ChainVerdict) -> Tuple[str, str]:
    """Why it failed, in words, and the same without what differs from trial to trial."""
    numbers = run.jobs()
    ended = jobs.read_ended(run, numbers[-1]) if numbers else None
    reason = (ended.reason or ended.how) if ended is not None else verdict.reason
    last = _last_line(run.log(numbers[-1])) if numbers else ""
    how = ended.how if ended is not None else "lost"
    why = "{}; its last line: {}".format(reason, last) if last else reason
    return why, "{}: {}".format(how, re.sub(r"[\d.e+-]*\d", "#", last or reason))


def said_nothing(run: RunFolder) -> bool:
    """Whether the newest job of the run left no line of its program."""
    numbers = run.jobs()
    return bool(numbers) and not _last_line(run.log(numbers[-1]))


def _last_line(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - 8192))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    own = [line.strip() for line in lines if line.strip() and not line.startswith("rabaska: ")]
    return own[-1][:_LAST_LINE] if own else ""


def _seconds(run: RunFolder) -> float:
    spent = 0.0
    for number in run.jobs():
        begun, ended = jobs.read_begun(run, number), jobs.read_ended(run, number)
        if begun is not None and ended is not None:
            spent += max(0.0, ended.ended - begun.begun)
    return round(spent, 3)


def _thinned(values: List[float]) -> List[List[float]]:
    """Points of the curve: first and last, and some between; the number of each report first."""
    count = len(values)
    if count <= _CURVE:
        places = list(range(count))
    else:
        places = sorted({round(at * (count - 1) / (_CURVE - 1)) for at in range(_CURVE)})
    return [[place + 1, values[place]] for place in places]
