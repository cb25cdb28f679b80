"""The full-screen view, driven by keys as somebody would type them."""

import asyncio
import time
from dataclasses import replace

import pytest
from tests.screen.watched_runs import SmallWatch, seen

from rabaska.domain.runs import RunState
from rabaska.screen.app import WatchApp


def typed(watch, *keys, size=(80, 24), only=None, then=None):
    """What the screen shows after some keys; `then` is called with the app and its pilot."""

    async def drive():
        app = WatchApp(watch, only=only)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            if then:
                await then(app, pilot)
            return shown(app) if app.is_running else ""

    return asyncio.run(drive())


def shown(app):
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)


def fresh(**more):
    return seen(at=time.time(), **more)


def test_the_list_shows_state_progress_forecast_loss_and_gpu_use():
    watch = SmallWatch(fresh(), fresh(name="dogs-1111", state=RunState.FINISHED))

    text = typed(watch, size=(120, 24))

    assert "cats-7f3a" in text
    assert "running" in text
    assert "epoch 3/40" in text
    assert "in 60 min" in text
    assert "90%" in text
    assert text.index("cats-7f3a") < text.index("dogs-1111")


def test_enter_opens_a_run_and_escape_leads_back():
    pages = []

    async def back(app, pilot):
        pages.append(shown(app))
        await pilot.press("escape")
        await pilot.pause()

    text = typed(SmallWatch(fresh()), "enter", then=back)

    assert "newest valid checkpoint" in pages[0]
    assert "progress" in text


def test_the_keys_are_explained():
    assert "cancel the run; asks first" in typed(SmallWatch(fresh()), "question_mark")


@pytest.mark.parametrize("size", [(20, 5), (6, 2), (200, 60)])
def test_every_page_fits_every_terminal(size):
    opened = ["enter", "right", "g", "s", "t", "question_mark", "escape", "c", "n", "escape"]

    typed(SmallWatch(fresh()), "c", "n", "question_mark", "escape", *opened, size=size)


def test_a_terminal_may_be_resized_while_a_run_is_shown():
    async def resize(app, pilot):
        for size in ((20, 5), (3, 2), (100, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()

    assert "cats-7f3a" in typed(SmallWatch(fresh()), "enter", then=resize)


def test_cancel_asks_first_and_only_y_means_yes():
    asked = []

    async def answer(app, pilot):
        for key in ("n", "enter", "escape"):
            await pilot.press("c")
            await pilot.pause()
            asked.append("Cancel cats-7f3a?" in shown(app))
            await pilot.press(key)
            await pilot.pause()
            asked.append("Cancel cats-7f3a?" in shown(app))

    text = typed(SmallWatch(fresh()), then=answer)

    assert asked == [True, False] * 3
    assert "cancelling" not in text


def test_resume_asks_first():
    stopped = fresh(state=RunState.INTERRUPTED)

    assert "Resume cats-7f3a on campus with 3 jobs?" in typed(SmallWatch(stopped), "r")


def test_what_cannot_be_done_is_said():
    assert "nothing to resume" in typed(SmallWatch(fresh()), "r")
    assert "already finished" in typed(SmallWatch(fresh(state=RunState.FINISHED)), "c")


def test_left_and_right_choose_the_curve():
    assert "─ val/loss" in typed(SmallWatch(fresh()), "enter", "right")


def test_the_bell_rings_once_when_a_run_ends():
    rung = []
    over = fresh(state=RunState.FINISHED)
    watch = SmallWatch(fresh(), then=[[fresh()], [over], [over]])

    async def ask(app, pilot):
        app.bell = lambda: rung.append(1)
        for _ in range(3):
            await asyncio.to_thread(app._ask, "campus")
            await pilot.pause()

    typed(watch, then=ask)

    assert rung == [1]


def test_a_lost_connection_leaves_what_was_seen_with_its_age():
    lost = replace(seen(at=time.time() - 600), trouble="campus cannot be reached")
    watch = SmallWatch(fresh(), then=[[lost]] * 9)

    async def ask(app, pilot):
        await asyncio.to_thread(app._ask, "campus")
        await pilot.pause()

    text = typed(watch, "enter", then=ask)
    assert "10 min old: campus cannot be reached" in text
    assert "step 199 loss" in text


def test_names_with_markup_are_shown_as_they_are():
    evil = "[bold]x[/bold][@click=app.quit]"
    run = fresh(note=evil, reason=evil, state=RunState.FAILED, hint=evil)

    assert evil in typed(SmallWatch(run), "enter")


def test_a_run_that_left_the_list_does_no_harm():
    watch = SmallWatch(fresh())

    async def forget(app, pilot):
        watch.runs.clear()
        app._show()
        await pilot.pause()

    assert "not in the list any more" in typed(watch, "enter", then=forget)


def test_one_run_that_was_named_is_left_by_one_key():
    run = fresh()

    assert typed(SmallWatch(run), "q", only=run) == ""


@pytest.mark.parametrize("before", [(), ("enter", "c")])
def test_control_c_ends_the_view_from_anywhere(before):
    assert typed(SmallWatch(fresh()), *before, "ctrl+c") == ""
