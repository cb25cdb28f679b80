"""How soon the browser's pages are there: a thousand runs, and a run of twenty million points.

Measured in a real Chromium, after the first reading: what was read once is kept.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rows import Row

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # its tests make runs by hand
from tests.node.made_runs import begin_job, end_job, make_run

from rabaska.records import run_index
from rabaska.records.home import Home
from rabaska.records.series_files import copy_folder

NAME = "pages"
QUICK = False  # at a smaller size, starting programs takes most of the time
SERIES = 20
FIRST_PAINT, USABLE, ZOOM = 1.0, 1.0, 0.2  # seconds that are allowed


def run(*, quick: bool) -> list[Row]:
    runs, points = (200, 50_000) if quick else (1000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder, _browser() as browser:
        base = Path(folder)
        many = [_made(base, f"cats-{number:04x}", number) for number in range(runs)]
        huge = _made(base, "huge-0001", runs)
        for record in many:
            _write(base, record, ["loss"], 1000)
        _write(base, huge, [f"loss {number}" for number in range(SERIES)], points)
        with _pages(base) as address:
            browser.get(address)
            root = address.partition("/?")[0]
            _wait(lambda: _count(browser, "tbody tr") == runs + 1)
            paint = min(_painted(browser, f"{root}/") for _ in range(5))
            _drawn(browser, f"{root}/run/huge-0001")  # read as text, once
            usable = min(_drawn(browser, f"{root}/run/huge-0001") for _ in range(3))
            zoom = min(_zoomed(browser, points) for _ in range(5))
    size = f"{points:,} points x {SERIES} series"
    return [
        _row(f"{runs:,} runs: first paint", paint, FIRST_PAINT),
        _row(f"{size}: first curve", usable, USABLE),
        _row(f"{size}: zoom", zoom, ZOOM),
    ]


def _row(work: str, seconds: float, allowed: float) -> Row:
    return Row(work, "allowed", seconds, allowed, allowed / seconds, at_least=1.0)


def _made(base: Path, name: str, number: int) -> run_index.RunRecord:
    home = Home(base / "home")
    home.profiles.mkdir(parents=True, exist_ok=True)
    (home.profiles / "away.toml").write_text('title = "Away"\nscheduler = "local"\n')
    folder = make_run(base / "store", name, command=["python", "train.py", "--lr", f"{number}"])
    end_job(folder, begin_job(folder), how="finished")
    Path(folder.path, "DONE").write_text("{}")
    record = run_index.RunRecord(name, "away", folder.path, "", 1.7e9 + number, "1")
    run_index.adopt(home.runs, record)
    return record


def _write(base: Path, record: run_index.RunRecord, names: list[str], points: int) -> None:
    """Here and there, so that nothing has to be sent."""
    file = copy_folder(Home(base / "home"), record) / "series" / "job-001.tsv"
    file.parent.mkdir(parents=True)
    with file.open("w") as stream:
        stream.write("# rabaska series 1\tjob 1\tbegan 1000.000\n")
        stream.writelines(f"=\t{place}\t{name}\tprinted\n" for place, name in enumerate(names))
        for step in range(points):
            value = (step * 7919 % 1000) / 1000
            line = f"\t{step}\t{step / 10:.1f}\t{value}\n"
            stream.write("".join([f"{place}{line}" for place in range(len(names))]))
    there = Path(record.path, "series")
    there.mkdir(exist_ok=True)
    os.link(file, there / file.name)


@contextmanager
def _pages(base: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "rabaska", "ui", "--no-browser"],
        env={**os.environ, "RABASKA_HOME": str(base / "home")}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process.stdout.readline().strip() if process.stdout else ""
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


@contextmanager
def _browser() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,1000"):
        options.add_argument(word)
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    browser.set_script_timeout(600)
    try:
        yield browser
    finally:
        browser.quit()


def _count(browser: Any, selector: str) -> int:
    return int(
        browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector)
    )


def _wait(ready: Callable[[], object]) -> None:
    end = time.monotonic() + 600
    while not ready() and time.monotonic() < end:
        time.sleep(0.02)


def _painted(browser: Any, address: str) -> float:
    browser.get(address)
    paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
    _wait(lambda: browser.execute_script(paint))
    return float(browser.execute_script(paint)) / 1000


def _drawn(browser: Any, address: str) -> float:
    began = time.monotonic()
    browser.get(address)
    _wait(lambda: _count(browser, ".plot[data-drawn]"))
    return time.monotonic() - began


def _zoomed(browser: Any, points: int) -> float:
    """The answer for a fifth of it."""
    address = (
        "/data/series?run=huge-0001&name=loss%203&axis=step&points=1200"
        f"&low={points * 2 // 5}&high={points * 3 // 5}"
    )
    asked = """
        const done = arguments[1], began = performance.now();
        const answer = fetch(arguments[0]).then((one) => one.json());
        answer.then(() => done(performance.now() - began));
    """
    return float(browser.execute_async_script(asked, address)) / 1000
