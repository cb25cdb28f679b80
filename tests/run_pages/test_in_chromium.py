"""The pages in a real Chromium: curves are drawn, news arrive, buttons work, scripts do not run."""

import socket
import threading
import time

import pytest
import uvicorn
from tests.needs import packages
from tests.node.made_runs import begin_job, make_run
from tests.run_pages.made_search import make_search

from rabaska.pages.app import application
from rabaska.pages.guard import Guard
from rabaska.steps import shown_runs
from rabaska.steps.shown_runs import ShownRuns

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def chromium():
    """One browser for all of these tests."""
    if packages.missing(packages.BROWSER) and packages.can_install():
        packages.install(packages.BROWSER)
    if lacking := packages.missing(packages.BROWSER):
        pytest.skip(f"needs the Debian packages {', '.join(lacking)}")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--window-size=1200,1600"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield browser
    browser.quit()


class Served:
    """The pages of a desk, listened to at a free port of loopback."""

    def __init__(self, desk):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(64)  # who comes before the server listens waits
        self.address = f"http://127.0.0.1:{self.sock.getsockname()[1]}"
        desk.shown = self.shown = ShownRuns(desk.home)
        desk.asks()
        self.guard = Guard(application(self.shown), port=self.sock.getsockname()[1])
        config = uvicorn.Config(
            self.guard, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.sock],), daemon=True)

    def __enter__(self):
        self.thread.start()
        self.shown.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.shown.stop()
        self.server.should_exit = True
        self.thread.join(10)
        self.sock.close()

    def open(self, browser, path="/"):
        browser.get(f"{self.address}/?token={self.guard.token}")
        browser.get(self.address + path)  # where the welcome page would lead a moment later


def until(found, seconds=20.0):
    """What `found` gives as soon as it is true; the page may be anew at any moment."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + seconds
    while True:
        try:
            if value := found():
                return value
        except WebDriverException:
            pass
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


def text_of(browser, selector):
    return browser.execute_script(
        "return document.querySelector(arguments[0])?.textContent ?? ''", selector
    )


def test_a_run_is_drawn_kept_fresh_and_stopped_and_nothing_hostile_runs(
    desk, chromium, monkeypatch
):
    monkeypatch.setattr(shown_runs, "_LIVE", 0.3)
    run, _ = desk.add(log=f"{EVIL}\n", note=EVIL)
    desk.tells(run, "loss", [3.0, 2.0, 1.0])
    desk.tells(run, EVIL, [1.0, 2.0])
    with Served(desk) as served:
        served.open(chromium, "/run/cats-7f3a")

        drawn = "return [...document.querySelectorAll('.plot')].map(one => one.dataset.drawn)"
        until(lambda: chromium.execute_script(drawn) == ["3", "2"])
        assert chromium.execute_script("return document.querySelectorAll('canvas').length") == 2

        desk.tells(run, "loss", [0.5, 0.25], start=3)  # live, without a reload
        until(lambda: chromium.execute_script(drawn) == ["5", "2"])

        chromium.execute_script("document.getElementById('log').scrollIntoView()")
        until(lambda: EVIL in text_of(chromium, "pre.log"))
        assert chromium.title == "cats-7f3a · rabaska"

        chromium.execute_script("window.confirm = () => true")
        chromium.execute_script("document.querySelector('button[data-do=cancel]').click()")
        until(lambda: "cats-7f3a is" in text_of(chromium, "#said"))
        until(lambda: text_of(chromium, "#head .state") in ("stopping", "cancelled"))

        served.stop()
        until(lambda: "does not answer" in text_of(chromium, "#link-state"))
        noise = [line["message"] for line in chromium.get_log("browser")]
        assert not [line for line in noise if "Content Security" in line or "Uncaught" in line]


def test_a_zoom_asks_again_and_the_theme_and_the_keys_work(desk, chromium):
    run, _ = desk.add()
    desk.add("dogs-1234")
    desk.tells(run, "loss", [float(step % 7) for step in range(20_000)])
    with Served(desk) as served:
        served.open(chromium, "/run/cats-7f3a")
        until(lambda: chromium.execute_script("return document.querySelector('.u-over')"))
        width = chromium.execute_script("return document.querySelector('.u-over').clientWidth")
        from selenium.webdriver.common.action_chains import ActionChains

        over = chromium.find_element("css selector", ".u-over")
        mouse = ActionChains(chromium).move_to_element_with_offset(over, -width // 4, 0)
        mouse.click_and_hold().move_by_offset(width // 8, 0).release().perform()
        asked = (
            "return performance.getEntriesByType('resource').map(one => one.name)"
            ".filter(name => name.includes('/data/series') && name.includes('low='))"
        )
        until(lambda: chromium.execute_script(asked))

        served.open(chromium)
        until(lambda: chromium.find_element("css selector", "table.runs"))
        body = until(lambda: chromium.find_element("css selector", "body"))
        before = chromium.execute_script("return getComputedStyle(document.body).backgroundColor")
        body.send_keys("d")
        until(
            lambda: (
                before
                != chromium.execute_script("return getComputedStyle(document.body).backgroundColor")
            )
        )
        body.send_keys("j", "j", "\n")
        until(lambda: chromium.current_url.endswith("/run/cats-7f3a"))

        chromium.delete_all_cookies()
        chromium.get(f"{served.address}/run/cats-7f3a")
        assert "needs its token" in text_of(chromium, "body")


def test_a_search_of_a_thousand_trials_is_drawn_chosen_from_and_leads_to_a_run(desk, chromium):
    make_search(desk.home, desk.folder / "store", trials=1000)
    run = make_run(desk.folder / "store", "cats-7f3a-t999")
    begin_job(run)
    desk.tells(run, "val_accuracy", [0.1, 0.2])
    with Served(desk) as served:
        served.open(chromium, "/search/cats-7f3a")
        counted = "return document.querySelectorAll(arguments[0]).length"
        until(lambda: chromium.execute_script(counted, "svg.parallel path.trial") == 1000)
        assert chromium.execute_script(counted, "svg.history circle.trial") == 980  # 20 failed
        assert chromium.execute_script(counted, "table.trials tbody tr") == 1000

        # From a tenth of the first axis to a half of it: the learning rates between.
        from selenium.webdriver.common.action_chains import ActionChains

        axis = chromium.find_element("css selector", "rect.hold[data-axis='0']")
        chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", axis)
        high = axis.rect["height"]
        mouse = ActionChains(chromium).move_to_element_with_offset(axis, 0, int(high * 0.4))
        mouse.click_and_hold().move_by_offset(0, -int(high * 0.4)).release().perform()
        chosen = until(lambda: chromium.execute_script(counted, "table.trials tr:not(.off)"))
        assert 300 < chosen < 500
        assert "of 1000 trials are chosen" in text_of(chromium, "#chosen")

        light = "document.querySelector('svg.slice circle.trial').dispatchEvent(new PointerEvent"
        chromium.execute_script(f"{light}('pointermove', {{bubbles: true}}))")
        assert chromium.execute_script(counted, ".lit") >= 6  # in every chart, and in the table
        assert "trial" in text_of(chromium, "#tip")

        link = "svg.parallel a[href='/trial/cats-7f3a/999'] path"
        click = "new MouseEvent('click', {bubbles: true, cancelable: true})"
        chromium.execute_script(
            f"document.querySelector(arguments[0]).dispatchEvent({click})", link
        )
        until(lambda: chromium.current_url.endswith("/run/cats-7f3a-t999"))
        until(lambda: chromium.execute_script(counted, ".plot canvas"))
        noise = [line["message"] for line in chromium.get_log("browser")]
        noise = [line for line in noise if served.address in line]
        assert not [line for line in noise if "Content Security" in line or "Uncaught" in line]
