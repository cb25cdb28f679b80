"""What clusters printed, by scheduler and file."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "recordings"


def recorded(scheduler: str, name: str) -> str:
    return (FOLDER / scheduler / name).read_text()
