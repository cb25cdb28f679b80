"""The scripts of a project: which can be started, and which of them trains."""

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path

from rabaska.scouting.imported_files import Files, reached
from rabaska.scouting.option_roles import Usage
from rabaska.scouting.script_options import Option, options
from rabaska.scouting.script_writes import Write, imported, loads, writes
from rabaska.scouting.shown_commands import ShownCommand, in_docstrings, in_texts, of_script
from rabaska.scouting.source import Source, SourceLine, called, is_main_guard, last_word

MOST_SCRIPTS = 400
_PLACES = ("*.py", "*/*.py", "*/*/*.py")
_NOT_SCRIPTS = re.compile(
    r"(^|/)(test_[^/]*|[^/]*_test|setup|conf|conftest|__init__)\.py$|(^|/)(tests?|docs?)/"
)
_TRAINS = re.compile(r"(^|[_/-])(train|training|trainer|fit|pretrain|finetune|run|main)")
_OTHERWISE = re.compile(
    r"eval|infer|predict|test|export|convert|plot|make|download|prepare|"
    r"preprocess|util|demo|visuali|server|api|benchmark|legacy|deprecated|sample|submit|launch",
    re.I,
)
_FRAMEWORKS = (
    "torch",
    "tensorflow",
    "keras",
    "jax",
    "flax",
    "lightning",
    "pytorch_lightning",
    "transformers",
    "numpy",
    "sklearn",
    "xgboost",
    "fastai",
    "mxnet",
)
_TRAINING_CALLS = {"backward", "fit", "train", "step", "zero_grad", "train_on_batch", "minimize"}


@dataclass(frozen=True)
class Script:
    """A file that can be started, with the files of the project it imports."""

    name: str  # relative to the project
    sources: tuple[Source, ...]  # itself first
    score: int  # how much it looks like the one that trains
    why: str
    shown: tuple[ShownCommand, ...] = ()  # how the project's own text starts it

    @property
    def main(self) -> Source:
        return self.sources[0]

    @property
    def options(self) -> tuple[Option, ...]:
        found = [option for each in self.sources for option in options(each)]
        return tuple({(each.command, each.name): each for each in reversed(found)}.values())[::-1]

    @property
    def writes(self) -> tuple[Write, ...]:
        return tuple(write for source in self.sources for write in writes(source))

    @property
    def loads(self) -> frozenset[str]:
        return frozenset[str]().union(*(loads(source) for source in self.sources))

    @property
    def calls(self) -> dict[str, SourceLine]:
        """Every dotted name it calls, with the first place."""
        places: dict[str, SourceLine] = {}
        for source in self.sources:
            for node in source.nodes:
                if isinstance(node, ast.Call):
                    places.setdefault(called(node), source.place(node, called(node)))
        return places


@dataclass(frozen=True)
class Scripts:
    """All that was read: the scripts, likeliest first, and the files that could not be."""

    found: tuple[Script, ...]
    unread: tuple[Source, ...]
    notebooks: tuple[str, ...]

    @property
    def rivals(self) -> tuple[Script, ...]:
        """Those that could be meant: about as likely as the first, which is one of them."""
        best = self.found[0].score if self.found else 0
        return tuple(script for script in self.found if script.score >= best - 1)


def find(project: Path) -> Scripts:
    files = Files(project)
    shown = in_texts(project)
    order = {command.script: number for number, command in reversed(list(enumerate(shown)))}
    sources = [source for name in _names(project) if (source := files.get(name))]
    readable = [_script(source, files, shown) for source in sources if not source.problem]
    able = sorted(
        (script for script in readable if script.score > 0),
        key=lambda script: (
            -script.score,
            order.get(script.name, len(order)),
            script.name.count("/"),
            script.name,
        ),
    )
    unread = tuple(source for source in sources if source.problem)
    notebooks = sorted(path.name for path in project.glob("*.ipynb"))
    return Scripts(tuple(able), unread, tuple(notebooks))


def _names(project: Path) -> list[str]:
    """The files that may be scripts, those at the top first."""
    names: dict[str, str] = {}  # by the file itself: links may lead to it, too
    for pattern in _PLACES:
        for path in sorted(project.glob(pattern)):
            name = path.relative_to(project).as_posix()
            if not _skipped(name) and len(names) < MOST_SCRIPTS:
                names.setdefault(os.path.realpath(path), name)
    return list(names.values())


def _skipped(name: str) -> bool:
    hidden = any(part.startswith(".") for part in name.split("/"))
    return hidden or "venv" in name.split("/") or bool(_NOT_SCRIPTS.search(name))


def _script(main: Source, files: Files, texts: tuple[ShownCommand, ...]) -> Script:
    if not (has_main(main) or _does_something(main)):
        return Script(main.name, (main,), 0, "")
    sources = reached(main, files)
    shown = of_script(texts, main.name)
    score, why = _score(main, sources, shown)
    return Script(main.name, sources, score, why, (*shown, *in_docstrings(main)))


def _score(
    main: Source, reached: tuple[Source, ...], shown: tuple[ShownCommand, ...]
) -> tuple[int, str]:
    """How much a file looks like the one to start for training, and by what."""
    score, reasons = 1, []
    if _TRAINS.search(main.name):
        score += 4 if "train" in main.name else 2
        reasons.append("it is named for training")
    if _OTHERWISE.search(main.name.rpartition("/")[2]):
        score -= 4
    if any(last_word(call) in _TRAINING_CALLS for source in reached for call in source.calls()):
        score += 2
        reasons.append("it trains")
    if any(write.checkpoint for source in reached for write in writes(source)):
        score += 2
        reasons.append("it saves its state")
    if any(_framework(source) for source in reached):
        score += 1
    if any(options(source) for source in reached):
        score += 1
        reasons.append("it takes options")
    if shown:
        score += 1
        reasons = reasons or [f"{shown[0].place.file} starts it"]
    return max(score, 1), ", ".join(reasons) or "it can be started"


def has_main(main: Source) -> bool:
    """Whether there is an `if __name__ == "__main__"`."""
    return any(is_main_guard(node) for node in main.tree.body)


def _does_something(main: Source) -> bool:
    """Whether starting it would do more than define things: a script without a main guard."""
    doing = (ast.For, ast.While, ast.With)
    for node in main.tree.body:
        if isinstance(node, doing):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return True
    return False


def _framework(source: Source) -> bool:
    return any(module.split(".")[0] in _FRAMEWORKS for module in imported(source))


def usage(script: Script) -> Usage:
    """How the script uses its options."""
    return Usage(frozenset().union(*(write.options for write in script.writes)), script.loads)
