"""What was read from a project's files, each answer with its evidence."""

from dataclasses import dataclass

from rabaska.scouting.requirements import Packages


@dataclass(frozen=True)
class Guess:
    """One answer, and what in the project's files it was read from."""

    what: str
    value: str
    evidence: str


@dataclass(frozen=True)
class Findings:
    name: str
    command: tuple[str, ...]
    resume: tuple[str, ...] = ()
    datasets: tuple[tuple[str, str], ...] = ()  # name, path
    jobs: int = 3
    keep: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    progress: str = ""
    gpus: str = ""  # "", used, needed or several
    packages: Packages | None = None
    guesses: tuple[Guess, ...] = ()
    warnings: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # the likeliest first
    data_folders: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()  # the lines that would let it resume
    launch: str = ""  # torchrun, where the program needs it
    variables: tuple[tuple[str, str], ...] = ()

    def evidence(self, what: str) -> str:
        return next((guess.evidence for guess in self.guesses if guess.what == what), "")
