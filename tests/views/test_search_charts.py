"""A search as charts: places on scales, the history of the best, which parameters matter."""

import math

import pytest
from tests.run_pages.made_search import SPACE, reached, result_of, values_of

from rabaska.domain.search import SearchState, SearchStatus, Trial
from rabaska.views.search_charts import MOST_DRAWN, search_charts


def trials(count, reach=reached):
    found = []
    for number in range(1, count + 1):
        told = result_of(number)
        value = reach(values_of(number)) if told["state"] == "finished" else told["value"]
        found.append(
            Trial(number, f"x-t{number}", values_of(number), told["state"], value, told["why"],
                  ended=told["ended"], curve=tuple(map(tuple, told["curve"])))
        )  # fmt: skip
    return tuple(found)


def search(found, **more):
    given = {
        "name": "x", "cluster": "here", "path": "/x", "state": SearchState.FINISHED,
        "metric": "acc", "goal": "max", "method": "random", "stopping": "none",
        "total": len(found), "at_once": 1, "trials": found, "space": SPACE,
    }  # fmt: skip
    return SearchStatus(**{**given, **more})


def test_values_have_their_places_and_a_parameter_that_does_not_count_has_none():
    charts = search_charts(search(trials(40)))

    by_name = {scale.name: place for place, scale in enumerate(charts.parameters)}
    assert charts.parameters[by_name["lr"]].place(1e-3) == pytest.approx(0.5)
    assert charts.parameters[by_name["depth"]].place(8) == 1.0
    assert charts.parameters[by_name["optimizer"]].place("adam") == 0.75
    adam = next(one for one in charts.points if one.trial.values["optimizer"] == "adam")
    assert adam.places[by_name["momentum"]] is None


def test_the_best_trial_that_finished_is_drawn_last():
    found = search(trials(60))

    charts = search_charts(found)

    assert charts.points[-1].trial == found.best
    assert charts.points[-1].rank == 1.0


@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_history_only_gets_better(goal):
    found = search(trials(60), goal=goal)

    values = [value for _, value in search_charts(found).history]

    assert values == sorted(values, reverse=goal == "min")
    assert values[-1] == found.best.value


def test_the_parameter_that_decides_is_the_most_important_and_noise_has_none():
    told = dict(search_charts(search(trials(200))).importance)

    assert next(iter(told)) == "lr"
    assert told["lr"] > 0.8
    assert told["optimizer"] < 0.05


def test_before_ten_trials_no_importance_is_told():
    assert search_charts(search(trials(9))).importance == ()


def test_one_trial_that_diverged_does_not_flatten_the_rest():
    found = list(trials(40))
    found[0] = Trial(1, "x-t1", values_of(1), "finished", -1e12, ended=1.0)

    charts = search_charts(search(tuple(found)))

    heights = sorted(one.height for one in charts.points if one.height is not None)
    assert heights[0] == 0.0
    assert heights[len(heights) // 2] > 0.4


def test_of_very_many_trials_the_best_are_drawn():
    found = search(trials(MOST_DRAWN + 50))

    charts = search_charts(found)

    assert charts.left_out == 50
    assert len(charts.points) == MOST_DRAWN
    assert charts.points[-1].trial == found.best


@pytest.mark.parametrize(
    "found",
    [
        (),
        (Trial(1, "x-t1", {}, "running"),),
        (Trial(1, "x-t1", {"lr": 0.1}, "finished", math.nan, ended=1.0),),
        (Trial(1, "x-t1", {"lr": "what?", "new": None}, "failed", ended=1.0),),
        (Trial(1, "x-t1", {"lr": -1.0}, "finished", 1.0, ended=1.0, curve=((1, math.inf),)),),
    ],
)
def test_any_search_can_be_drawn(found):
    from rabaska.pages import report_file
    from rabaska.steps.shown_searches import SeenSearch
    from rabaska.views.search_report import search_report

    seen = SeenSearch(record=None, status=search(found), heard=1.0)

    assert report_file.html([], [search_report(seen)])


def test_a_sweep_without_a_metric_is_drawn_by_what_it_reported():
    found = tuple(
        Trial(n, f"x-t{n}", {"lr": n}, "finished", told={"loss": 1 / n}, ended=float(n))
        for n in range(1, 5)
    )

    charts = search_charts(search(found, metric="", space={"lr": [1, 2, 3, 4]}))

    assert charts.metric.name == "loss"
    assert all(one.height is not None for one in charts.points)
    assert charts.history == ()


@pytest.mark.parametrize("state", list(SearchState))
def test_every_state_of_a_search_can_be_reported(state):
    from rabaska.steps.shown_searches import SeenSearch
    from rabaska.views.search_report import search_report

    report = search_report(SeenSearch(record=None, status=search(trials(3), state=state)))

    assert (report.state, bool(report.tone)) == (state.value, True)
