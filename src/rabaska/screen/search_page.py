"""The page of `watch` for a search: its charts, one at a time, and its trials."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Static

from rabaska.domain.amounts import say_duration
from rabaska.records.search_index import SearchRecord
from rabaska.screen.safe_text import line, painted
from rabaska.screen.search_lines import chart_lines, chart_names, head_lines
from rabaska.steps.shown_searches import SeenSearch
from rabaska.views.plot import Look
from rabaska.views.search_report import SearchReport, search_report

if TYPE_CHECKING:
    from rabaska.screen.app import WatchApp

_EVERY = 5.0  # seconds between two looks; the cluster is asked less often where it is slow
_LEAST_TABLE = 4  # lines


class SearchPage(Screen[None]):
    """← and → show other charts, Enter the run of the trial that is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "chart(-1)", show=False, priority=True),
        Binding("right", "chart(1)", show=False, priority=True),
        Binding("enter", "open", "open", priority=True),
        Binding("j", "cursor(1)", show=False),
        Binding("k", "cursor(-1)", show=False),
        Binding("n", "other", "next search"),
        Binding("u", "ask", "update"),
        Binding("escape,q,backspace", "app.leave", "back"),
        Binding("question_mark,h,f1", "app.keys", "keys"),
    ]
    DEFAULT_CSS = """
    SearchPage .charts { height: auto; }
    SearchPage DataTable { height: 1fr; }
    SearchPage .status { height: 1; dock: bottom; text-style: reverse; }
    """

    def __init__(
        self, records: list[SearchRecord], ask: Callable[[SearchRecord], SeenSearch], look: Look
    ) -> None:
        super().__init__()
        self._records, self._ask, self._look = records, ask, look
        self._place, self._chart = 0, 0
        self._report: SearchReport | None = None
        self._seen: SeenSearch | None = None
        self._rows: tuple[tuple[str, ...], ...] = ()
        self._asking = False
        self._shown: object = None

    @property
    def watcher(self) -> "WatchApp":
        return self.app  # type: ignore[return-value]

    @property
    def _record(self) -> SearchRecord:
        return self._records[self._place]

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="charts")
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=False)
        yield table
        yield Static("", markup=False, classes="status")

    def on_mount(self) -> None:
        self.set_interval(_EVERY, self.action_ask)
        self.query_one(DataTable).focus()
        self.action_ask()
        self.refresh_page()

    def on_resize(self) -> None:
        self.refresh_page()

    def action_ask(self) -> None:
        """In a thread, for a cluster may take its time."""
        if self.is_current and not self._asking:
            self._asking = True
            self.run_worker(self._work, thread=True, exit_on_error=False)

    def _work(self) -> None:
        record = self._record
        try:
            seen = self._ask(record)
            report = search_report(seen)
        finally:
            self._asking = False
        if self.watcher.is_running and record == self._record:
            self.watcher.call_from_thread(self._show, seen, report)

    def _show(self, seen: SeenSearch, report: SearchReport | None) -> None:
        self._seen, self._report = seen, report
        self.refresh_page()

    def action_other(self) -> None:
        self._place = (self._place + 1) % len(self._records)
        self._report = self._seen = None
        self._rows = ()
        self.refresh_page()
        self.action_ask()

    def action_chart(self, by: int) -> None:
        if self._report:
            self._chart = (self._chart + by) % len(chart_names(self._report.charts))
            self.refresh_page()

    def action_cursor(self, by: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=max(0, table.cursor_row + by))

    def action_open(self) -> None:
        row = self.query_one(DataTable).cursor_row
        if 0 <= row < len(self._rows):
            self.watcher.open_trial(self._record, int(self._rows[row][0]))

    def refresh_page(self) -> None:
        if not self.is_mounted:
            return
        width, height = self.size
        shown = (self._seen, self._chart, self._place, width, height, int(time.time() / _EVERY))
        if shown != self._shown:  # thousands of lines are not drawn again each second
            self._shown = shown
            self.query_one(".charts", Static).update(Text("\n").join(self._lines(width, height)))
            self._fill_table()
        searches = f"n next of {len(self._records)} searches · " if len(self._records) > 1 else ""
        words = f"q back · ← → charts · Enter run of the trial · {searches}? keys"
        said = self.watcher.said() or words
        self.query_one(".status", Static).update(line(width, [(said.ljust(width), "")]))

    def _lines(self, width: int, height: int) -> list[Text]:
        report = self._report
        if report is None:
            why = self._seen.problem if self._seen else ""
            text = why or f"asking {self._record.cluster} …"
            return [painted(self._record.name, "strong"), line(width, [(text, "dim")])]
        old = timedelta(seconds=max(0, round(time.time() - report.seen)))
        head = [*head_lines(report, f"{say_duration(old)} old", width)]
        room = height - 1 - len(head) - _LEAST_TABLE
        names = chart_names(report.charts)
        chart = chart_lines(
            report.charts,
            names[self._chart % len(names)],
            width=width,
            height=min(room, max(8, room * 2 // 3)),
            look=self._look,
        )
        return [*head, *chart][: max(1, height - 2)]

    def _fill_table(self) -> None:
        table: DataTable[Text] = self.query_one(DataTable)
        rows = self._report.table.rows if self._report else ()
        if rows == self._rows and table.row_count == len(rows):
            return
        chosen = self._rows[table.cursor_row][0] if table.cursor_row < len(self._rows) else ""
        self._rows = rows
        table.clear(columns=True)
        if self._report:
            table.add_columns(*map(painted, self._report.table.headings))
        for row in rows:
            table.add_row(*map(painted, row))
        numbers = [row[0] for row in rows]
        if chosen in numbers:
            table.move_cursor(row=numbers.index(chosen), animate=False)
