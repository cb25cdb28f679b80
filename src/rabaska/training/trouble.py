"""What can go wrong in exact training, said so that somebody can act on it."""


class Trouble(Exception):
    """An error with what happened, why, and what to do next."""

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        lines = [what]
        lines += ["  because {}".format(why)] if why else []
        lines += ["  hint: {}".format(hint)] if hint else []
        super().__init__("\n".join(lines))
        self.what = what
        self.why = why
        self.hint = hint


class CannotResume(Trouble):
    """There is a checkpoint, and this program cannot continue from it."""


class NotSaveable(Trouble):
    """Something in the state is neither numbers nor text."""


class SaveFailed(Trouble):
    """A checkpoint could not be written, for another reason than a full disk."""


class DamagedData(Trouble, OSError):
    """A sample is not what was packed."""


class WrongUse(Trouble):
    """The session was asked for something it cannot do."""
