"""Every error of rabaska, with its exit code.

    RabaskaError                1
    ├── WrongUse                2   the command line is not valid
    ├── SettingsError           3   rabaska.toml or a cluster profile is wrong
    ├── DatasetError            4   a dataset cannot be packed as it is
    ├── DamagedPack             5   a pack does not match its manifest
    ├── NoSpace                 6   a disk or a quota is full
    ├── SubmissionRefused       7   the cluster refused the job
    ├── Unreachable             8   the cluster cannot be reached
    ├── NoSuchRun               9   no run has that name, or several have
    ├── RunFailed              10   the run ended without finishing
    ├── EnvironmentFailed      11   the Python environment cannot be built
    ├── CommandFailed          12   a command on the cluster failed unexpectedly
    ├── NotSafe                13   a rehearsal found that an interruption would do harm
    ├── CannotAdvance          14   a job ends before the program saves anything
    ├── NotWritable            15   a folder on this computer cannot be written to
    ├── MissingProgram         16   a program on this computer is missing or cannot be started
    ├── StartsOver             17   each job starts the training over
    ├── ResultsMissing         18   not all results of a program could be kept
    ├── WouldFail              19   a check found that the run would fail
    └── NoWinner               20   several trials of a search may be the best
    Ctrl-C                    130

A bug keeps its traceback; every error that a user can act on is one of these.
"""


class RabaskaError(Exception):
    """What happened, why, and what to do next."""

    exit_code = 1

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  because {self.why}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class WrongUse(RabaskaError):
    exit_code = 2


class SettingsError(RabaskaError):
    exit_code = 3


class DatasetError(RabaskaError):
    exit_code = 4


class DamagedPack(RabaskaError):
    exit_code = 5


class NoSpace(RabaskaError):
    exit_code = 6


class SubmissionRefused(RabaskaError):
    exit_code = 7


class Unreachable(RabaskaError):
    exit_code = 8


class NoSuchRun(RabaskaError):
    exit_code = 9


class RunFailed(RabaskaError):
    exit_code = 10


class EnvironmentFailed(RabaskaError):
    exit_code = 11


class CommandFailed(RabaskaError):
    exit_code = 12


class NotSafe(RabaskaError):
    exit_code = 13


class CannotAdvance(RabaskaError):
    exit_code = 14


class NotWritable(RabaskaError):
    exit_code = 15


class MissingProgram(RabaskaError):
    exit_code = 16


class StartsOver(RabaskaError):
    exit_code = 17


class ResultsMissing(RabaskaError):
    exit_code = 18


class WouldFail(RabaskaError):
    exit_code = 19


class NoWinner(RabaskaError):
    exit_code = 20
