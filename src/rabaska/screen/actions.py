"""What the keys of `watch` do to a run: cancel, resume, fetch, its log, an explanation."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rabaska.errors import RabaskaError
from rabaska.journeys.watch import Seen, end_of_log
from rabaska.records.home import home
from rabaska.screen.dialogs import Question, Reading
from rabaska.screen.safe_text import log_lines
from rabaska.views.words import counted

if TYPE_CHECKING:
    from textual.app import App

    from rabaska.views.advice import ExplanationsView

    Base = App[None]
else:
    Base = object


class Actions(Base):
    """Each acts in a thread, for a cluster may take its time, and says at the bottom what came."""

    def say(self, text: str) -> None:
        raise NotImplementedError

    def action_ask_now(self) -> None:
        raise NotImplementedError

    def action_cancel(self) -> None:
        seen = self._chosen()
        if seen is None:
            return
        if seen.run and seen.run.state.over:
            self.say(f"{seen.record.name} is already {seen.run.state.value}")
            return
        question = f"Cancel {seen.record.name}? Its results and checkpoints are kept."
        self._asked(question, lambda: self._in_thread(seen, "cancelling", _cancelled))

    def action_resume(self) -> None:
        seen = self._chosen()
        if seen is None:
            return
        if seen.run and not seen.run.state.over:
            self.say(f"{seen.record.name} is {seen.run.state.value}: there is nothing to resume")
            return
        jobs = seen.run.jobs_requested if seen.run else 0
        which = f" with {counted(jobs, 'job')}" if jobs else ""
        over = f"\nIt {seen.run.begins_again}." if seen.run and seen.run.begins_again else ""
        question = f"Resume {seen.record.name} on {seen.record.cluster}{which}?{over}"
        self._asked(question, lambda: self._in_thread(seen, "resuming", _resumed))

    def action_fetch(self) -> None:
        seen = self._chosen()
        if seen:
            self._in_thread(seen, "fetching", _fetched)

    def action_log(self) -> None:
        seen = self._chosen()
        if seen is None:
            return
        jobs = seen.run.jobs if seen.run else ()
        job = jobs[-1].number if jobs else 1
        title = f"{seen.record.name}, job {job}: the end of its log · u reads again · q back"
        self._read(
            title, lambda: log_lines(end_of_log(seen.record, job, home())) or ["no output yet"]
        )

    def action_explain(self) -> None:
        seen = self._chosen()
        if seen:
            self._read(f"{seen.record.name}: explained · q back", lambda: _explained(seen))

    def action_connect(self) -> None:
        """Open connections that were lost, where passwords may be typed."""
        from rabaska.journeys.watch import open_connection

        with self.suspend():
            for cluster in dict.fromkeys(s.record.cluster for s in self._all() if s.trouble):
                try:
                    open_connection(cluster, home())
                except RabaskaError as problem:
                    self.say(problem.what)
        self.action_ask_now()

    def _all(self) -> Sequence[Seen]:
        return self.seen()  # type: ignore[attr-defined,no-any-return]

    def _chosen(self) -> Seen | None:
        chosen = getattr(self.screen, "chosen", None)
        return chosen() if chosen else None

    def _asked(self, question: str, act: Callable[[], None]) -> None:
        self.push_screen(Question(question), lambda answer: act() if answer else None)

    def _in_thread(self, seen: Seen, doing: str, act: Callable[[Seen, Any], str]) -> None:
        reporter = _Reporter(lambda text: self.call_from_thread(self.say, text))

        def work() -> None:
            try:
                said = act(seen, reporter)
            except RabaskaError as problem:
                parts = (problem.what, problem.why, problem.hint)
                said = "; ".join(part for part in parts if part)
            if self.is_running:
                self.call_from_thread(self._done, said)

        self.say(f"{doing} {seen.record.name} …")
        threading.Thread(target=work, name=doing, daemon=True).start()

    def _done(self, said: str) -> None:
        self.say(said)
        self.action_ask_now()

    def _read(self, title: str, lines: Callable[[], list[str]]) -> None:
        def work() -> None:
            try:
                found = lines()
            except RabaskaError as problem:
                found = str(problem).splitlines()
            if self.is_running:
                self.call_from_thread(page.show, found)

        def read() -> None:
            threading.Thread(target=work, name="read", daemon=True).start()

        page = Reading(title, again=read)
        self.push_screen(page)


class _Reporter:
    """Says what a journey does at the bottom of the screen."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def step(self, text: str) -> None:
        self._say(text)

    def warn(self, text: str) -> None:
        self._say(f"note: {text}")

    def moved(
        self, what: str, done: int, total: int, *, unit: str = "bytes", aside: str = ""
    ) -> None:
        if total:
            self._say(f"{what}: {done / total:.0%} {aside}".rstrip())


def _cancelled(seen: Seen, _reporter: _Reporter) -> str:
    from rabaska.journeys.cancel import cancel
    from rabaska.views.runs import after_cancel

    return "; ".join(map(str, after_cancel(cancel(seen.record, home()))))


def _resumed(seen: Seen, reporter: _Reporter) -> str:
    from rabaska.journeys.resume import resume

    resumed = resume(seen.record, home(), reporter=reporter)
    return f"run {resumed.run}: resumed, id {resumed.job_id}"


def _fetched(seen: Seen, reporter: _Reporter) -> str:
    from rabaska.journeys import fetch as journey

    fetched = journey.fetch(seen.record, home(), reporter=reporter)
    journey.refuse_incomplete(fetched)
    new = fetched.files - fetched.own_files
    return f"{counted(new, 'new file')} of {fetched.run} in {fetched.folder}"


def _explained(seen: Seen) -> list[str]:
    from rabaska.journeys.explain import explain_run
    from rabaska.views.advice import explanations_view

    return explanation_lines(explanations_view(explain_run(seen.record, home())))


def explanation_lines(view: "ExplanationsView") -> list[str]:
    """What is known of a failure, where the time went, and what it loses time with."""
    from rabaska.views.advice import NO_EXPLANATION, pace_lines

    lines: list[str] = []
    for known in view.known:
        lines += [f"> {known.line}"] if known.line else []
        lines += [known.meaning, f"fix: {known.fix}"]
        lines += [f"rabaska: {known.ours}", ""] if known.ours else [""]
    if not view.known:
        lines += [*view.status.splitlines(), ""] if view.status else []
    if view.known or view.status:
        return [*lines, *pace_lines(view)]
    return [*view.text, "", NO_EXPLANATION, *pace_lines(view)]
