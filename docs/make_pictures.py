"""The pictures of the pages, taken of real runs by a real browser: `make pictures`.

Two runs of examples/digits on this computer, one of whose jobs reaches its time limit.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURES = REPOSITORY / "docs" / "pictures"
RUNS = (["--epochs", "120", "--lr", "0.05"], ["--epochs", "120", "--lr", "0.01"])


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "digits"
        shutil.copytree(REPOSITORY / "examples" / "digits", project)
        os.environ |= {
            "RABASKA_HOME": f"{scratch}/home",
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        names = _make_runs(project)
        rabaska(project, "report", *names, "-o", f"{scratch}/report.html")
        with _pages(project) as address, _browser() as browser:
            browser.get(address)
            root = address.partition("/?")[0]
            _take(browser, f"{root}/", "runs", 420)
            _take(browser, f"{root}/run/{names[0]}", "run", 1250)
            _take(browser, f"{root}/compare?run={names[0]}&run={names[1]}", "compare", 1000)
            _take(browser, f"file://{scratch}/report.html", "report", 1250)


def rabaska(project: Path, *words: str) -> str:
    done = subprocess.run(
        ["rabaska", *words], cwd=project, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def _make_runs(project: Path) -> list[str]:
    subprocess.run([sys.executable, "make_data.py"], cwd=project, check=True)
    rabaska(project, "init", "--yes")
    names = []
    for words in RUNS:
        options = ("--walltime", "45s", "--jobs", "20", "--tag", "paper", "--quiet")
        names.append(rabaska(project, "run", *options, "--", *words).splitlines()[-1])
        rabaska(project, "wait", "--quiet")
    rabaska(project, "note", names[1], "a smaller step")
    return names


@contextmanager
def _pages(project: Path) -> Iterator[str]:
    process = subprocess.Popen(
        ["rabaska", "ui", "--no-browser"], cwd=project, stdout=subprocess.PIPE, text=True
    )
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
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield browser
    finally:
        browser.quit()


def _take(browser: Any, address: str, name: str, height: int) -> None:
    browser.set_window_size(1200, height + 140)
    browser.get(address)
    time.sleep(3)  # until its curves are drawn
    browser.save_screenshot(str(PICTURES / f"{name}.png"))


if __name__ == "__main__":
    main()
