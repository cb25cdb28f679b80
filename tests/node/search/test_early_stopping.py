"""Early stopping: who goes on and who does not."""

from rabaska.node.search.stopping import ASHA, HYPERBAND, MEDIAN, NONE, Rule, bracket, why_stop

OTHERS = [[0.1, 0.2, 0.2], [0.2, 0.3, 0.3], [0.3, 0.4, 0.4], [0.4, 0.5, 0.5], [0.5, 0.6, 0.6]]


def test_without_a_rule_all_go_on():
    assert why_stop(Rule(NONE, 1), 1, [0.0], OTHERS) == ""


def test_the_median_of_what_others_reached_by_then_counts():
    rule = Rule(MEDIAN, 1)

    assert why_stop(rule, 6, [0.31], OTHERS) == ""
    assert why_stop(rule, 6, [0.31, 0.32], OTHERS) == (
        "after 2 reports its best was 0.32, below the median 0.4 of 5 trials"
    )
    assert why_stop(rule, 6, [0.0], OTHERS[:4]) == ""  # too few to judge by


def test_less_may_be_better():
    rule = Rule(MEDIAN, -1)

    assert why_stop(rule, 6, [0.2], OTHERS) == ""
    assert "above the median" in why_stop(rule, 6, [0.9], OTHERS)


def test_asha_lets_the_best_third_pass_each_rung():
    rule = Rule(ASHA, 1, reduction=3)

    assert why_stop(rule, 6, [0.45], OTHERS) == ""  # second of six, and two pass
    assert why_stop(rule, 6, [0.35], OTHERS) == (
        "after 1 report it was number 3 of 6 with 0.35; 2 may go on"
    )
    assert why_stop(rule, 1, [0.01], []) == ""  # the first one has nobody to lose against


def test_between_two_rungs_the_last_one_counts_and_before_the_first_none():
    rule = Rule(ASHA, 1, first=3, reduction=3)
    others = [[0.5] * 10 for _ in range(5)]

    assert why_stop(rule, 6, [0.1, 0.1], others) == ""
    assert "after 3 reports" in why_stop(rule, 6, [0.1] * 5, others)
    assert "after 9 reports" in why_stop(rule, 6, [0.1] * 9, others)


def test_a_trial_whose_metric_is_no_number_is_stopped():
    assert "nan" in why_stop(Rule(ASHA, 1), 6, [float("nan")], OTHERS)


def test_hyperband_lets_some_trials_run_longer_before():
    rule = Rule(HYPERBAND, 1, reduction=3)
    brackets = [bracket(rule, number) for number in range(13)]

    assert brackets.count(0) == 9
    assert brackets.count(1) == 3
    assert brackets.count(2) == 1
    later = brackets.index(2)
    assert why_stop(rule, later, [0.0] * 8, [[0.9] * 27] * 5) == ""
    assert why_stop(rule, later, [0.0] * 9, [[0.9] * 27] * 5) != ""


def test_a_trial_that_has_reported_as_often_as_any_may_end_by_itself():
    assert why_stop(Rule(ASHA, 1), 6, [0.0, 0.0, 0.0], OTHERS) == ""
