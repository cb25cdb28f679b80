"""What clusters printed, by scheduler and file."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "recordings"


def recorded(scheduler: str, name: str) -> str:
    """Without the first line where that says whose words these are, and when they were said."""
    text = (FOLDER / scheduler / name).read_text()
    return text.partition("\n")[2] if text.startswith("# ") else text


def printed(scheduler: str, name: str) -> str:
    """What stands before `-- on standard error` and the exit code."""
    return recorded(scheduler, name).partition("-- ")[0]
