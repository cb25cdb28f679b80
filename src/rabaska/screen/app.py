"""The program behind the full-screen view: it polls, rings, and acts on what is typed."""

import os
import signal
import sys
import time
from typing import ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType

from rabaska.domain.amounts import say_size
from rabaska.errors import RabaskaError
from rabaska.journeys import watch as journey
from rabaska.journeys.watch import HERE, Searches, Seen, Watch
from rabaska.records.run_index import RunRecord
from rabaska.records.search_index import SearchRecord
from rabaska.screen.actions import Actions
from rabaska.screen.dialogs import keys
from rabaska.screen.pages import ListPage, RunPage, _Page
from rabaska.screen.polling import Poller, Traffic
from rabaska.screen.run_lines import Choice
from rabaska.screen.search_page import SearchPage
from rabaska.steps.notify import Notifier
from rabaska.views.plot import Look
from rabaska.views.words import counted

_TICK = 1.0  # seconds
_SAID = 15.0  # seconds that a sentence stays at the bottom
_SLEPT = 20.0  # seconds that a tick is late when the computer was asleep


class WatchApp(Actions, App[None]):
    """`rabaska watch`; `teller` sends notifications of what it sees."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "rabaska watch"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        watch: Watch,
        *,
        only: Seen | None = None,
        teller: Notifier | None = None,
        searches: Searches | None = None,
        first: SearchRecord | None = None,
    ) -> None:
        super().__init__()
        self._watch, self._only, self._teller = watch, only, teller
        self._searches, self._first = searches, first
        watch.sync.complain = lambda text: self.call_from_thread(self.say, text)
        if teller:
            teller.complain = lambda text: self.call_from_thread(self.say, text)
        self._pollers = [Poller(name, self._ask, here=name == HERE) for name in watch.clusters]
        self._traffic = Traffic(journey.bytes_moved)
        self._alive: set[str] = set()  # runs that were seen at work since the view was opened
        self._last_tick = time.time()
        self._said, self._said_at = "", 0.0
        self._choice = Choice(look=Look(ascii=not _knows_braille()))

    def on_mount(self) -> None:
        self.push_screen(ListPage())
        if self._only:
            self.open_run(self._only)
        if self._first:
            self.action_searches()
        for poller in self._pollers:
            poller.start()
        self.set_interval(_TICK, self._tick)
        import asyncio

        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.exit)

    def on_unmount(self) -> None:
        for poller in self._pollers:
            poller.end()

    def on_key(self) -> None:
        self._said = ""
        for poller in self._pollers:
            poller.attend()

    def seen(self) -> list[Seen]:
        return self._watch.seen()

    def run_at(self, key: str) -> Seen | None:
        return next((seen for seen in self._watch.seen() if seen.key == key), None)

    def open_run(self, seen: Seen) -> None:
        self.push_screen(RunPage(seen.key, self._choice))
        self.run_worker(lambda: self._read_numbers(seen.key), thread=True, exit_on_error=False)

    def action_searches(self) -> None:
        """The newest search, or the one that was asked for, first."""
        records = self._searches.records() if self._searches else []
        if not self._searches or not records:
            self.say("there are no searches; `rabaska search run` starts one")
            return
        if self._first in records:
            place = records.index(self._first)
            records = [*records[place:], *records[:place]]
        self.push_screen(SearchPage(records, self._searches.seen, self._choice.look))

    def open_trial(self, search: SearchRecord, number: int) -> None:
        """The run of a trial; its cluster is asked which it is."""

        def work() -> None:
            try:
                record = self._searches.run_of(search, number) if self._searches else None
            except RabaskaError as problem:
                text = f"{problem.what}: {problem.why}" if problem.why else problem.what
                self.call_from_thread(self.say, text)
                return
            if record and self.is_running:
                self.call_from_thread(self._open_added, record)

        self.run_worker(work, thread=True, exit_on_error=False)

    def _open_added(self, record: RunRecord) -> None:
        seen = self._watch.add(record)
        if record.cluster not in [poller.cluster for poller in self._pollers]:
            poller = Poller(record.cluster, self._ask, here=record.cluster == HERE)
            self._pollers.append(poller)
            poller.start()
        self.open_run(seen)
        self.action_ask_now()

    def _read_numbers(self, key: str) -> None:
        """In a thread: a long run has millions of points."""
        self._watch.open(key)
        if self.is_running:
            self.call_from_thread(self._show)

    def action_leave(self) -> None:
        alone = (self._only and isinstance(self.screen, RunPage)) or (
            self._first and isinstance(self.screen, SearchPage)
        )
        if alone:
            self.exit()
        else:
            self.pop_screen()

    def action_keys(self) -> None:
        self.push_screen(keys())

    def action_ask_now(self) -> None:
        for poller in self._pollers:
            poller.wake()

    def say(self, text: str) -> None:
        """A line at the bottom, until the next one."""
        self._said, self._said_at = text, time.monotonic()
        self._show()

    def said(self) -> str:
        """What was said last, if that was a moment ago."""
        return self._said if time.monotonic() - self._said_at < _SAID else ""

    def status_line(self, width: int) -> str:
        """What was done last, what is asked, how much that moves, and which key tells more."""
        if self.said():
            return self.said()
        runs = counted(len(self._watch.seen()), "run")
        asking = [poller.cluster for poller in self._pollers if poller.is_asking]
        troubles = list(dict.fromkeys(seen.trouble for seen in self.seen() if seen.trouble))
        far = any(poller.cluster != HERE for poller in self._pollers)
        parts = [
            "q back · ? keys" if isinstance(self.screen, RunPage) else "? keys",
            runs if isinstance(self.screen, ListPage) else "",
            f"{say_size(self._traffic.per_minute(time.time()))}/min" if far else "",
            f"asking {', '.join(asking)}" if asking and width > 60 and far else "",
            *troubles[:1],
        ]
        return " · ".join(part for part in parts if part)

    def _ask(self, cluster: str) -> bool:
        """In the thread of a poller."""
        more = self._watch.refresh(cluster)
        mine = self._watch.of(cluster)
        for seen in mine:
            if self._teller and seen.run and not seen.trouble:
                self._teller(seen.record, seen.run, seen.curves, seen.vitals)
        if self.is_running:
            self.call_from_thread(self._show_news, mine)
        return more

    def _show_news(self, runs: list[Seen]) -> None:
        for seen in runs:
            if seen.run is None or seen.trouble:
                continue
            key = seen.key
            if not seen.run.state.over:
                self._alive.add(key)
            elif key in self._alive:
                self._alive.discard(key)
                self.bell()
                why = f": {seen.run.reason}" if seen.run.reason else ""
                self.say(f"{seen.record.name} {seen.run.state.value}{why}")
        self._show()

    def _show(self) -> None:
        if isinstance(self.screen, _Page | SearchPage):
            self.screen.refresh_page()

    def _tick(self) -> None:
        now = time.time()
        if not 0 <= now - self._last_tick < _SLEPT:  # the lid was closed, or the clock was set
            self.action_ask_now()
        self._last_tick = now
        if self.screen.size != self.size:  # resized at the moment when a page was left
            self.screen.post_message(events.Resize(self.size, self.size))
        self._show()


def _knows_braille() -> bool:
    """Not the console of Linux itself, and nothing that is not UTF-8."""
    encoding = (sys.__stdout__.encoding or "") if sys.__stdout__ else ""
    return "utf" in encoding.lower() and os.environ.get("TERM") != "linux"
