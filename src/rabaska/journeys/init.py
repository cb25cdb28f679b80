"""Init: look at a project that has never seen rabaska, and propose its rabaska.toml."""

import errno
from dataclasses import dataclass
from pathlib import Path

from rabaska.errors import NoSpace, WrongUse
from rabaska.node import files, private_files
from rabaska.scouting import settings_draft
from rabaska.scouting.guesses import Guess
from rabaska.scouting.project_facts import scout

FILE = "rabaska.toml"

__all__ = ["FILE", "Guess", "Proposal", "Question", "init", "questions", "write"]


@dataclass(frozen=True)
class Proposal:
    """The text of a rabaska.toml, and what it was guessed from."""

    text: str
    guesses: tuple[Guess, ...]
    warnings: tuple[str, ...]
    scripts: tuple[str, ...] = ()  # that could be started, likeliest first
    data_folders: tuple[str, ...] = ()  # that could be the data, likeliest first
    advice: tuple[str, ...] = ()  # the lines that would let the program resume


@dataclass(frozen=True)
class Question:
    """Something a person knows better; the first choice is the guess."""

    about: str  # the argument of `init` that takes the answer
    text: str
    choices: tuple[str, ...]


def init(folder: Path, *, script: str = "", data: str = "") -> Proposal:
    """What rabaska.toml could say about `folder`; nothing is run and nothing is written.

    `script` and `data` are answers to the questions of an earlier proposal.
    """
    if not folder.is_dir():
        raise WrongUse(f"{folder} is not a folder", hint="name the folder of a training program")
    if script and not (folder / script).is_file():
        raise WrongUse(f"{script} is not a file in {folder}", hint="name it relative to that")
    if data and not (folder / data).is_dir():
        raise WrongUse(f"{data} is not a folder in {folder}", hint="name it relative to that")
    found = scout(folder, script=script, data=data)
    return Proposal(
        settings_draft.text(found),
        found.guesses,
        found.warnings,
        found.scripts,
        found.data_folders,
        found.advice,
    )


def questions(proposal: Proposal) -> tuple[Question, ...]:
    """What is worth asking: only where there is more than one answer."""
    asked = []
    if len(proposal.scripts) > 1:
        asked.append(Question("script", "Which script trains?", proposal.scripts))
    took = {guess.value for guess in proposal.guesses if guess.what == "data"}
    if len(proposal.data_folders) > 1 and took & set(proposal.data_folders):
        asked.append(Question("data", "Which folder holds the data?", proposal.data_folders))
    return tuple(asked)


def write(proposal: Proposal, target: Path, *, overwrite: bool = False) -> None:
    """Write the proposal to `target`, whole or not at all, and over nothing unless told."""
    if target.exists() and not overwrite:
        raise WrongUse(
            f"{target} is there already",
            hint="edit it, or let `rabaska init --force` write a new one over it",
        )
    try:
        with private_files.AsUser():
            files.write_whole(str(target), proposal.text)
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (NoSpace if full else WrongUse)(
            f"{target} cannot be written",
            why=problem.strerror or str(problem),
            hint="make room there" if full else "check that the folder is there and is yours",
        ) from problem
