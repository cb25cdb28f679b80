"""What can go wrong in exact training, said so that somebody can act on it."""


class TrainingError(Exception):
    """An error with what happened, why, and what to do next."""

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        lines = [what]
        lines += ["  because {}".format(why)] if why else []
        lines += ["  hint: {}".format(hint)] if hint else []
        super().__init__("\n".join(lines))
        self.what = what
        self.why = why
        self.hint = hint


class CannotResume(TrainingError):
    """There is a checkpoint, and this program cannot continue from it."""


class NotSaveable(TrainingError):
    """Something in the state is neither numbers nor text."""


class SaveFailed(TrainingError):
    """A checkpoint could not be written, for another reason than a full disk."""


class DamagedData(TrainingError, OSError):
    """A sample does not match what was packed."""


class WrongUse(TrainingError):
    """The session was asked for something it cannot do."""
