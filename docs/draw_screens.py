"""Draw what `rabaska watch` shows, from real runs on this computer: `make pictures`.

The project `examples/digits` is run in a folder that is deleted afterwards, in jobs of a few
seconds, and the view is opened without a terminal.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PICTURES = REPOSITORY / "docs" / "pictures"
SIZE = (100, 30)
_PATIENCE = 240  # seconds


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    os.environ["RABASKA_HOME"] = str(folder / "home")
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    project = folder / "digits"
    try:
        shutil.copytree(REPOSITORY / "examples" / "digits", project)
        for words in (["make_data.py"], ["-m", "rabaska", "init", "--yes"]):
            subprocess.run([sys.executable, *words], cwd=project, check=True)
        _rabaska(project, "run", "--walltime", "3m", "--wait", "--", "--epochs", "8")
        _rabaska(project, "run", "--walltime", "40s", "--jobs", "20", "--", "--epochs", "80")
        _wait_for_second_job(project)
        asyncio.run(_draw())
        _rabaska(project, "cancel")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_second_job(project: Path) -> None:
    """So that there is a chain to draw."""
    words = [sys.executable, "-m", "rabaska", "status", "--json"]
    for _ in range(_PATIENCE):
        told = json.loads(
            subprocess.run(words, cwd=project, check=True, capture_output=True).stdout
        )
        if len(told["jobs"]) > 1 and told["jobs"][-1]["last_step"]:
            return
        time.sleep(1)


def _rabaska(project: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "rabaska", *words], cwd=project, check=True)


async def _draw() -> None:
    from rabaska.journeys.watch import Watch
    from rabaska.records.home import home
    from rabaska.records.run_index import remembered
    from rabaska.screen.app import WatchApp

    app = WatchApp(Watch(remembered(home().runs), home()))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(4)
        _write("watch-list.svg", app.export_screenshot(title="rabaska watch"))
        await pilot.press("enter")
        await pilot.pause(3)
        _write("watch-run.svg", app.export_screenshot(title="rabaska watch"))


def _write(name: str, picture: str) -> None:
    """Without fonts from the network: those of the reader will do."""
    PICTURES.mkdir(exist_ok=True)
    local = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    local = re.sub(r"terminal-\d+", "terminal", local)  # the same names each time
    (PICTURES / name).write_text(local.replace("Fira Code", "DejaVu Sans Mono"), "utf-8")


if __name__ == "__main__":
    main()
