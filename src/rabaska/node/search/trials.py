"""The trials of a search as its folder has them: read, claimed, ended and gathered."""

import os
import re
import time
from typing import Any, Dict, List, Optional, Set, Tuple

from .. import files
from ..record.run_folder import TRIAL
from . import study as studies
from .study import BLOCK, Study, Trial, publish

_FILE = re.compile(r"(\d{6})(?:\.(try|left)-(\d+)|\.(result|reports))?(\.json)?\Z")
ALL = "all.json"
THINNED = "thinned"  # all of these trials were looked through (see `thinning`)


class Trials:
    """All trials; `refresh` reads what is new, so that one who works on a search asks quickly."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.by_number: Dict[int, Trial] = {}
        self.gathered: Set[str] = set()
        self._next = 1
        self._known: Dict[str, files.Json] = {}  # files that never change, by path

    def refresh(self) -> None:
        for name in studies._names(self.study.trials):
            if name.isdigit() and name not in self.gathered:
                self._read_block(name)

    def _read_block(self, name: str) -> None:
        """Single files first: who gathers them writes all.json before they go."""
        folder = os.path.join(self.study.trials, name)
        found = self._single(folder)
        complete = self._all_of(folder)
        if complete is not None:
            kept = [_from_json(one) for one in complete.get("trials", [])]
            self.by_number.update((one.number, one) for one in kept if one is not None)
            self.gathered.add(name)
            self._known = {
                path: value for path, value in self._known.items() if not path.startswith(folder)
            }
            return
        self.by_number.update(found)

    def _all_of(self, folder: str) -> Optional[files.Json]:
        """What was gathered; a damaged file is put aside, for the runs know what became of them.

        OSError where it cannot be read now: that says nothing about what it holds.
        """
        path = os.path.join(folder, ALL)
        try:
            complete = files.read_json(path)
            if complete is None and not os.path.exists(path):
                return None
        except ValueError:
            complete = None
        if complete is None:
            try:
                os.rename(path, path + ".damaged")
            except OSError:
                pass  # somebody else did
        return complete

    def _single(self, folder: str) -> Dict[int, Trial]:
        begun: Dict[int, Optional[files.Json]] = {}
        tries: Dict[int, Tuple[int, str]] = {}
        left: Dict[int, int] = {}
        results: Dict[int, Optional[files.Json]] = {}
        reports: Dict[int, str] = {}
        for name in studies._names(folder):
            matched = _FILE.match(name)
            if matched is None:
                continue
            number, path = int(matched.group(1)), os.path.join(folder, name)
            what, attempt = matched.group(2) or matched.group(4), int(matched.group(3) or 0)
            if what == "left":
                left[number] = max(left.get(number, 0), attempt)
            elif what == "reports":
                reports[number] = path
            elif what == "try":
                if attempt > tries.get(number, (0, ""))[0]:
                    tries[number] = (attempt, path)
            else:
                (results if what == "result" else begun)[number] = self._once(path)
        found = {}
        for number, value in begun.items():
            one = _from_json(dict(value or {}, number=number))
            if one is None:
                one = self._from_run(number)
            attempt, path = tries.get(number, (1, ""))
            taken = (self._once(path) or {}) if path else {}
            owner = taken if path else one.owner
            told = (_read(reports[number]) or {}) if number in reports else {}
            found[number] = one._replace(
                values=taken.get("values") or one.values,
                owner=owner,
                tries=attempt,
                left=left.get(number, 0) >= attempt,
                result=results.get(number),
                reports=_numbers(told.get("values")),
            )
        return found

    def _from_run(self, number: int) -> Trial:
        """A trial whose own file is torn: its run knows its values, where it was made."""
        told = _read(os.path.join(self.study.run(number).path, TRIAL)) or {}
        values, repeats = told.get("values"), told.get("repeats")
        return Trial(
            number,
            values if isinstance(values, dict) else {},
            0.0,
            {},
            repeats=repeats if isinstance(repeats, int) else 0,
        )

    def _once(self, path: str) -> Optional[files.Json]:
        if path not in self._known:
            value = _read(path)
            if value is None:
                return None
            self._known[path] = value
        return self._known[path]

    @property
    def all(self) -> List[Trial]:
        return [self.by_number[number] for number in sorted(self.by_number)]

    @property
    def ended(self) -> List[Trial]:
        return [one for one in self.all if one.result is not None]

    @property
    def open(self) -> List[Trial]:
        """Begun and without a result; only blocks that are not gathered have such."""
        return [one for one in self.all if one.result is None]

    @property
    def proposed(self) -> int:
        """How many there are that repeat no other."""
        return sum(1 for one in self.by_number.values() if not one.repeats)

    def next_number(self) -> int:
        """The first that nobody claimed; what a damaged disk lost is done again, or found done."""
        while self._next in self.by_number:
            self._next += 1
        return self._next


def claim(study: Study, number: int, values: Dict[str, Any], repeats: int = 0) -> Optional[Trial]:
    """Begin trial `number`; None when somebody else has it."""
    os.makedirs(study.block(number), exist_ok=True)
    now = time.time()
    owner = studies.myself(now)
    value = {"values": values, "begun": now, "owner": owner, "repeats": repeats}
    path = study.file(number, ".json")
    if not publish(path, value):
        return None
    if os.path.exists(os.path.join(study.block(number), ALL)):
        files.remove_if_there(path)  # it was over long ago; our node did not know
        return None
    return Trial(number, values, now, owner, repeats=repeats)


def take_over(study: Study, trial: Trial) -> Optional[Trial]:
    """Become the owner of a trial whose owner is gone; None when somebody else was quicker."""
    owner = studies.myself(time.time())
    path = study.file(trial.number, ".try-{}.json".format(trial.tries + 1))
    if not publish(path, dict(owner, values=trial.values)):
        return None
    return trial._replace(owner=owner, tries=trial.tries + 1, left=False)


def is_ours(study: Study, trial: Trial) -> bool:
    """Whether nobody took it over meanwhile: who slept for long is taken for dead."""
    return not os.path.exists(study.file(trial.number, ".try-{}.json".format(trial.tries + 1)))


def leave(study: Study, trial: Trial) -> None:
    """Let others have it at once."""
    studies.publish_text(study.file(trial.number, ".left-{}".format(trial.tries)), "")


def end(study: Study, trial: Trial, result: files.Json) -> bool:
    """Write its result; False when it has one already."""
    if os.path.exists(os.path.join(study.block(trial.number), ALL)):
        return False
    path = study.file(trial.number, ".result.json")
    if publish(path, result):
        return True
    if _read(path) is not None:
        return False
    files.write_json(path, result)  # over one that a damaged disk left
    return True


def report(study: Study, trial: Trial, values: List[float]) -> None:
    """Show others how far it is; only the owner of a trial does that."""
    files.write_json(study.file(trial.number, ".reports.json"), {"values": values})


def gather(study: Study, trials: Trials) -> int:
    """Write trials that are all over into fewer files: how many hundreds."""
    count = 0
    for name in studies._names(study.trials):
        folder = os.path.join(study.trials, name)
        if not name.isdigit() or set(studies._names(folder)) <= {ALL, THINNED}:
            continue
        if name in trials.gathered:
            _remove_single(folder)  # somebody was killed at it
            continue
        first = int(name) * BLOCK
        numbers = range(max(1, first), first + BLOCK)
        of_it = [trials.by_number.get(number) for number in numbers]
        over = [one for one in of_it if one is not None and one.result is not None]
        if len(over) == len(numbers):
            publish(os.path.join(folder, ALL), {"trials": [_to_json(one) for one in over]})
            _remove_single(folder)
            count += 1
    return count


def _remove_single(folder: str) -> None:
    for name in os.listdir(folder):
        if name not in (ALL, THINNED):
            files.remove_if_there(os.path.join(folder, name))


def _to_json(trial: Trial) -> files.Json:
    value = dict(trial._asdict())
    del value["owner"], value["left"]
    curve = (trial.result or {}).get("curve") or []
    if [at for at, _ in curve] == list(range(1, len(trial.reports) + 1)):
        del value["reports"]  # the curve of its result has them all
    return value


def _from_json(value: Any) -> Optional[Trial]:
    try:
        return Trial(
            number=int(value["number"]),
            values=dict(value["values"]),
            begun=float(value["begun"]),
            owner=dict(value.get("owner") or {}),
            tries=int(value.get("tries", 1)),
            repeats=int(value.get("repeats", 0)),
            result=value.get("result"),
            reports=_reports(value),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _reports(value: files.Json) -> List[float]:
    if "reports" in value:
        return _numbers(value["reports"])
    return [float(one[1]) for one in (value.get("result") or {}).get("curve") or []]


def _numbers(value: Any) -> List[float]:
    found = value if isinstance(value, list) else []
    return [float(one) for one in found if isinstance(one, (int, float))]


def _read(path: str) -> Optional[files.Json]:
    try:
        return files.read_json(path)
    except (OSError, ValueError):
        return None
