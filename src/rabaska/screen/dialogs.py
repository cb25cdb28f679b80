"""Screens over the others: a question, a text to read, the keys."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from rabaska.screen.safe_text import harmless, painted

KEYS = (
    ("↑ ↓, j k", "choose a run"),
    ("Enter", "show the run"),
    ("Esc, q", "back; q in the list ends watch, and no run with it"),
    ("l", "the log"),
    ("e", "explain: what is wrong, what to do"),
    ("f", "fetch its results to this computer"),
    ("c", "cancel the run; asks first"),
    ("r", "resume the run; asks first"),
    ("← →", "another curve"),
    ("g", "a logarithmic scale"),
    ("s", "smooth the curve; in the list, the searches"),
    ("t", "steps or time"),
    ("u", "ask the cluster now"),
    ("o", "connect again to a cluster that wants a password"),
    ("?", "these keys"),
)


class Question(ModalScreen[bool]):
    """Asks before something ends or starts; only `y` means yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q,enter,ctrl+c", "answer(False)", "no"),
    ]
    DEFAULT_CSS = """
    Question { align: center middle; }
    Question Vertical { width: auto; max-width: 100%; height: auto; max-height: 100%;
                        border: round $warning; padding: 0 1; background: $surface; }
    Question Static { width: auto; max-width: 100%; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(harmless(self._question)), markup=False)
            yield Static("y: yes    n: no", markup=False)

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class Reading(Screen[None]):
    """Lines to read and scroll: a log, an explanation, the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "back"),
        Binding("u", "again", "read again"),
        Binding("home", "home", show=False),
        Binding("end", "end", show=False),
    ]
    DEFAULT_CSS = """
    Reading > .title { height: 1; text-style: bold; }
    Reading VerticalScroll { height: 1fr; }
    Reading VerticalScroll Static { width: 100%; }
    """

    def __init__(
        self, title: str, lines: Sequence[str] = (), *, again: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._title, self._lines, self._again = title, list(lines), again
        self._at_end = again is not None

    def compose(self) -> ComposeResult:
        yield Static(painted(self._title), markup=False, classes="title")
        with VerticalScroll():
            yield Static(self._text(), markup=False, id="lines")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        if self._again:
            self._again()

    def show(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)
        self.query_one("#lines", Static).update(self._text())
        if self._at_end:
            self.query_one(VerticalScroll).scroll_end(animate=False)

    def action_again(self) -> None:
        if self._again:
            self._again()

    def action_home(self) -> None:
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_end(self) -> None:
        self.query_one(VerticalScroll).scroll_end(animate=False)

    def _text(self) -> Text:
        return Text("\n".join(map(harmless, self._lines)) or "…")


def keys() -> Reading:
    width = max(len(key) for key, _ in KEYS)
    return Reading("keys of rabaska watch", [f"{key:<{width}}  {what}" for key, what in KEYS])
