"""Telling people of their runs, as their settings.toml says: each thing once."""

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rabaska.domain.curves import Curve
from rabaska.domain.notices import IDLES, STALLS, Limits, Notice, notices
from rabaska.domain.runs import RunStatus
from rabaska.errors import RabaskaError
from rabaska.records.home import Home
from rabaska.records.notified import Notified
from rabaska.records.run_index import RunRecord

if TYPE_CHECKING:
    from rabaska.settings.own_settings import OwnNotifyTable  # pydantic takes its time

_NUMBERS_EVERY = 300.0  # seconds between two questions for numbers alone
Vitals = Mapping[str, Mapping[str, Curve]]


def notifier(home: Home) -> "Notifier | None":
    """Who tells, if somebody wants to be told; one look at the disk where nobody does."""
    if not (home.folder / "settings.toml").exists():
        return None
    from rabaska.settings.own_settings import own_notify

    own = own_notify(home.folder)
    return Notifier(home, own) if own and (own.command or own.webhook) else None


class Notifier:
    """Tells what is new of the runs it is shown; what goes wrong is said once, by `complain`."""

    def __init__(self, home: Home, own: "OwnNotifyTable") -> None:
        self._home, self._own = home, own
        self._notified = Notified(home.notified)
        self._limits: dict[str, Limits] = {}
        self._asked: dict[str, float] = {}
        self.may_ask = True  # a cluster for its numbers
        self.complain: Callable[[str], object] = lambda _: None

    def __call__(
        self,
        record: RunRecord,
        run: RunStatus,
        curves: Mapping[str, Curve] | None = None,
        vitals: Vitals | None = None,
    ) -> None:
        """Tell what there is to tell of the run; numbers that are not given are those kept here."""
        limits = self._limits_of(record)
        if not run.state.over and curves is None and {STALLS, IDLES} & set(limits.when):
            curves, vitals = self._numbers(record)
        since = self._notified.since(self._home.folder / "settings.toml")
        for notice in notices(run, curves or {}, vitals or {}, limits):
            if time.time() - notice.age >= since:
                self._tell(record, run, notice)

    def _limits_of(self, record: RunRecord) -> Limits:
        from rabaska.settings.own_settings import limits

        if record.project not in self._limits:
            self._limits[record.project] = limits(self._own, record.project)
        return self._limits[record.project]

    def _numbers(self, record: RunRecord) -> tuple[Mapping[str, Curve], Vitals]:
        from rabaska.steps.live_runs import LiveRuns

        live, now = LiveRuns([record], self._home), time.monotonic()
        if self.may_ask and now - self._asked.get(record.path, -_NUMBERS_EVERY) >= _NUMBERS_EVERY:
            self._asked[record.path] = now
            live.refresh()
        return live.series(record), live.vitals(record)

    def _tell(self, record: RunRecord, run: RunStatus, notice: Notice) -> None:
        for channel, send in self._channels(run, notice).items():
            key = _key(record, f"{notice.key}.{channel}")
            if not self._notified.claim(key):
                continue
            try:
                send()
            except RabaskaError as problem:
                self.complain(f"{problem.what}: {problem.why}" if problem.why else problem.what)
            else:
                self._notified.sent(key)

    def _channels(self, run: RunStatus, notice: Notice) -> dict[str, Callable[[], None]]:
        from rabaska.remote import tell

        own, title, text = self._own, notice.title, notice.text
        told = {
            "RABASKA_RUN": run.name,
            "RABASKA_CLUSTER": run.cluster,
            "RABASKA_STATE": run.state.value,
            "RABASKA_EVENT": notice.kind,
        }
        form, token = own.webhook_as or "", own.webhook_token
        channels: dict[str, Callable[[], None]] = {}
        if own.command:
            channels["command"] = lambda: tell.by_command(own.command, title, text, told)
        if own.webhook:
            channels["webhook"] = lambda: tell.by_webhook(
                own.webhook, title, text, form=form, token=token
            )
        return channels


def _key(record: RunRecord, what: str) -> str:
    name = f"{record.id or record.name}.{record.cluster}.{what}"
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
