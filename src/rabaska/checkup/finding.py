"""What a check finds, and the change that may be made for it without harm."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SafeFix:
    """A change that cannot do harm: `line ends` of a file, or a `variable` of the environment."""

    kind: str
    target: str  # the file, relative to the project, or the variable's name
    value: str = ""


@dataclass(frozen=True)
class Finding:
    id: str
    what: str
    where: str  # a file and line, or a key of rabaska.toml
    why: str
    fix: str
    serious: bool = True  # the run would certainly fail: `run` refuses it
    likely: bool = False  # not certain, but `run` shows it
    safe_fix: SafeFix | None = None

    @property
    def family(self) -> str:
        return self.id.partition(".")[0]
