"""The two pages of `watch`: the list of runs, and one run."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import DataTable, Static

from rabaska.journeys.watch import Seen
from rabaska.screen.run_lines import Choice, run_lines
from rabaska.screen.safe_text import line, painted
from rabaska.views.plot import bar
from rabaska.views.watched import WatchedRow, age_of, main_curve, watched_row

if TYPE_CHECKING:
    from rabaska.screen.app import WatchApp

_FRESH = 90.0  # seconds: a cluster is asked at least every minute
# Columns in their order, with the width of the screen from which they are shown.
_COLUMNS = (
    ("run", 0), ("state", 0), ("progress", 34), ("loss", 50), ("gpu", 56), ("done", 70),
    ("cluster", 90), ("seen", 0),
)  # fmt: skip
_BAR = 10  # letters, on a wide screen
_WIDE = 100  # columns


class _Page(Screen[None]):
    """What both pages have: a line at the bottom, and the keys for the run that is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "app.log", "log"),
        Binding("e", "app.explain", "explain"),
        Binding("f", "app.fetch", "fetch"),
        Binding("c", "app.cancel", "cancel"),
        Binding("r", "app.resume", "resume"),
        Binding("u", "app.ask_now", "update"),
        Binding("o", "app.connect", "connect"),
        Binding("question_mark,h,f1", "app.keys", "keys"),
    ]
    DEFAULT_CSS = """
    _Page .status { height: 1; dock: bottom; text-style: reverse; }
    """

    _status = Text()

    @property
    def watcher(self) -> "WatchApp":
        return self.app  # type: ignore[return-value]

    def show_status(self) -> None:
        found = self.query(".status")
        if found:
            width = self.size.width
            text = line(width, [(self.watcher.status_line(width).ljust(width), "")])
            if text != self._status:
                self._status = text
                found.first(Static).update(text)

    def chosen(self) -> Seen | None:
        raise NotImplementedError

    def refresh_page(self) -> None:
        raise NotImplementedError


class ListPage(_Page):
    """All runs, those that are at work first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", priority=True),
        Binding("j", "cursor(1)", show=False),
        Binding("k", "cursor(-1)", show=False),
        Binding("s", "app.searches", "searches"),
        Binding("q", "app.quit", "quit"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Seen] = []
        self._columns: list[str] = []
        self._wide = False
        self._rows: dict[str, tuple[Seen, WatchedRow]] = {}
        self._drawn: list[WatchedRow] = []

    def compose(self) -> ComposeResult:
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=False)
        yield table
        yield Static("", markup=False, classes="status")

    def on_mount(self) -> None:
        self.refresh_page()
        self.query_one(DataTable).focus()

    def on_resize(self) -> None:
        self.refresh_page()

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        chosen = self.chosen()
        if chosen:
            self.watcher.open_run(chosen)

    def action_cursor(self, by: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=max(0, table.cursor_row + by))

    def chosen(self) -> Seen | None:
        row = self.query_one(DataTable).cursor_row
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def refresh_page(self) -> None:
        if not self.is_mounted:
            return
        table: DataTable[Text] = self.query_one(DataTable)
        before = self.chosen()
        self._shown = in_order(self.watcher.seen())
        now = time.time()
        rows = [self._row(seen, now) for seen in self._shown]
        width = self.size.width
        columns = [name for name, least in _COLUMNS if width >= least and _says(rows, name)]
        layout = (columns, width >= _WIDE)
        if layout != (self._columns, self._wide) or table.row_count != len(rows):
            self._columns, self._wide = layout
            table.clear(columns=True)
            table.add_columns(*columns)
            for row in rows:
                table.add_row(*self._cells(row))
        else:
            for place, row in enumerate(rows):
                # Rows are the same objects while nothing is new of a run; there may be thousands.
                if row is not self._drawn[place]:
                    _update(table, place, self._cells(row))
        self._drawn = rows
        if before:
            paths = [seen.record.path for seen in self._shown]
            if before.record.path in paths:
                table.move_cursor(row=paths.index(before.record.path), animate=False)
        self.show_status()

    def _row(self, seen: Seen, now: float) -> WatchedRow:
        known = self._rows.get(seen.key)
        if known and known[0] is seen and known[1].age == age_of(seen, now, _FRESH):
            return known[1]
        row = watched_row(seen, now, _FRESH)
        self._rows[seen.key] = (seen, row)
        return row

    def _cells(self, row: WatchedRow) -> list[Text]:
        return [_cell(row, name, wide=self._wide) for name in self._columns]


def _says(rows: Sequence[WatchedRow], column: str) -> bool:
    """Whether a column that may be empty says something of any run."""
    told = {"seen": "age", "gpu": "gpu", "done": "forecast", "loss": "loss"}.get(column)
    return told is None or any(getattr(row, told) for row in rows)


def _update(table: "DataTable[Text]", down: int, cells: Sequence[Text]) -> None:
    from textual.coordinate import Coordinate

    for across, cell in enumerate(cells):
        place = Coordinate(down, across)
        if table.get_cell_at(place) != cell:
            table.update_cell_at(place, cell, update_width=True)


def in_order(runs: Sequence[Seen]) -> list[Seen]:
    """Those at work first, then the newest."""
    return sorted(
        runs,
        key=lambda seen: (seen.run is not None and seen.run.state.over, -seen.record.created),
    )


def _cell(row: WatchedRow, column: str, *, wide: bool) -> Text:
    if column == "state":
        return painted(row.state, row.tone)
    if column == "progress":
        filled = f"{bar(row.share or 0, _BAR)} " if wide else ""
        share = "" if row.share is None else f"{filled}{row.share:.0%} "
        return painted(f"{share}{row.progress}"[:40])
    texts = {
        "run": row.name, "cluster": row.cluster, "loss": row.loss, "gpu": row.gpu,
        "done": row.forecast, "seen": row.age,
    }  # fmt: skip
    return painted(texts[column])


class RunPage(_Page):
    """One run: its chain, curves, vitals, checkpoints and the end of its log."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "curve(-1)", show=False),
        Binding("right", "curve(1)", show=False),
        Binding("g", "switch('log')", "log scale", show=False),
        Binding("s", "switch('smooth')", "smooth", show=False),
        Binding("t", "switch('by_time')", "time", show=False),
        Binding("escape,q,backspace", "app.leave", "back"),
    ]

    def __init__(self, key: str, choice: Choice) -> None:
        super().__init__()
        self._key, self.choice = key, choice

    def compose(self) -> ComposeResult:
        yield RunBody()
        yield Static("", markup=False, classes="status")

    def on_mount(self) -> None:
        self.show_status()

    def chosen(self) -> Seen | None:
        return self.watcher.run_at(self._key)

    def refresh_page(self) -> None:
        if self.is_mounted:
            self.query_one(RunBody).show_news()
            self.show_status()

    def action_curve(self, by: int) -> None:
        seen = self.chosen()
        names = list(seen.curves) if seen else []
        if names:
            now = self.choice.curve if self.choice.curve in names else main_curve(names)
            chosen = names[(names.index(now) + by) % len(names)]
            self.choice = replace(self.choice, curve=chosen)
            self.refresh_page()

    def action_switch(self, what: str) -> None:
        if what == "log":
            look = replace(self.choice.look, log=not self.choice.look.log)
            self.choice = replace(self.choice, look=look)
        elif what == "smooth":
            self.choice = replace(self.choice, smooth=not self.choice.smooth)
        else:
            self.choice = replace(self.choice, by_time=not self.choice.by_time)
        self.refresh_page()


class RunBody(Widget):
    """The lines of a run; drawn again only when they are others: the terminal may be far away."""

    DEFAULT_CSS = "RunBody { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._drawn = Text()

    def show_news(self) -> None:
        if self._lines() != self._drawn:
            self.refresh()

    def render(self) -> Text:
        self._drawn = self._lines()
        return self._drawn

    def _lines(self) -> Text:
        page = self.screen
        seen = page.chosen() if isinstance(page, RunPage) else None
        if seen is None or not isinstance(page, RunPage):
            return painted("this run is not in the list any more", "caution")
        width, height = self.size
        lines = run_lines(seen, page.choice, width=width, height=height, now=time.time())
        return Text("\n").join(lines)
