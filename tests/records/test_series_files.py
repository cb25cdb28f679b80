"""Numbers over time as they lie in a run's folder, read once and read on."""

import math

from rabaska.node.login.new_numbers import Allowance, new_numbers
from rabaska.node.record.run_folder import RunFolder
from rabaska.node.series.series_format import SeriesFile
from rabaska.records.series_files import RunNumbers, held, read_series, read_vitals, take


def write(run, job, points, *, name="loss", began=1000.0):
    run.mkdir(exist_ok=True)
    file = SeriesFile(f"{run}/series/job-{job:03d}.tsv", job, began)
    for step, value in points:
        file.add(name, "printed", step, began + (step or 0), value)
    file.flush()


def test_points_come_back_as_they_were_written(tmp_path):
    write(tmp_path, 1, [(1, 0.5), (2, math.nan), (3, math.inf), (4, -math.inf), (5, 1e-300)])

    loss = read_series(tmp_path)["loss"]

    assert list(loss.steps) == [1, 2, 3, 4, 5]
    assert list(loss.times) == [1001, 1002, 1003, 1004, 1005]
    assert repr(list(loss.values)) == "[0.5, nan, inf, -inf, 1e-300]"
    assert loss.source == "printed"


def test_names_survive_tabs_and_newlines_but_not_control_characters(tmp_path):
    write(tmp_path, 1, [(1, 0.5)], name="a\tb\n\\t\x1b[31m" + "x" * 500)

    (name,) = read_series(tmp_path)

    assert name.startswith("a\tb\n\\t?[31mxxx")
    assert len(name) == 200


def test_a_reader_goes_on_where_it_stopped_and_leaves_half_a_line(tmp_path):
    write(tmp_path, 1, [(1, 0.5)])
    numbers = RunNumbers(tmp_path)
    numbers.refresh()

    with open(tmp_path / "series/job-001.tsv", "a") as file:
        file.write("0\t2\t2.0\t0.4\n0\t3\t3.0\t0.")
        file.flush()
        assert numbers.refresh()
        half = list(numbers.series["loss"].values)
        file.write("3\n")
    numbers.refresh()

    assert half == [0.5, 0.4]
    assert list(numbers.series["loss"].values) == [0.5, 0.4, 0.3]
    assert not numbers.refresh()


def test_the_newest_of_two_values_for_one_step_holds(tmp_path):
    write(tmp_path, 1, [(1, 0.5), (2, 0.4), (2, 0.3), (1, 9.0)])

    assert list(read_series(tmp_path)["loss"].values) == [0.5, 0.3]


def test_jobs_are_joined_in_the_order_of_their_numbers(tmp_path):
    for job in (1, 2, 10):
        write(tmp_path, job, [(job, float(job)), (job + 1, float(job))], began=1000.0 * job)

    assert list(read_series(tmp_path)["loss"].values) == [1, 2, 2, 10, 10]


def test_vitals_are_told_by_node(tmp_path):
    for node in ("gpu-1", "gpu-2"):
        file = SeriesFile(f"{tmp_path}/vitals/job-001-{node}.tsv", 1, 50.0)
        file.add("gpu0 use", "fraction", None, 51.0, 0.5)
        file.flush()

    vitals = read_vitals(tmp_path)

    assert list(vitals) == ["gpu-1", "gpu-2"]
    assert vitals["gpu-1"]["gpu0 use"].source == "fraction"
    assert not vitals["gpu-1"]["gpu0 use"].has_steps


def test_damaged_lines_are_passed_over(tmp_path):
    write(tmp_path, 1, [(1, 0.5)])
    with open(tmp_path / "series/job-001.tsv", "ab") as file:
        file.write(b"7\t1\t1\t1\n0\tx\t1\t1\n\xff\xfe\n=\t1\n0\t2\t2\t0.4\n\t\t\t\n")

    assert list(read_series(tmp_path)["loss"].values) == [0.5, 0.4]


def test_a_copy_grows_by_what_is_new_only(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    write(there, 1, [(step, step / 7) for step in range(1000)])

    first = new_numbers(RunFolder(str(there)), held(here), Allowance())
    take(here, first)
    with open(there / "series/job-001.tsv", "a") as file:
        file.write("0\t1000\t5.0\t0.25\n0\t1001\t6.0\t0.")
    second = new_numbers(RunFolder(str(there)), held(here), Allowance())
    take(here, second)

    assert second["series/job-001.tsv"]["text"] == "0\t1000\t5.0\t0.25\n"
    assert read_series(here) == read_series(there)
    assert new_numbers(RunFolder(str(there)), held(here), Allowance()) == {}


def test_more_than_one_answer_carries_comes_with_the_next(tmp_path):
    there, here, answers = tmp_path / "there", tmp_path / "here", 0
    write(there, 1, [(step, step / 7) for step in range(1000)])

    left = 1
    while left:
        left = take(here, new_numbers(RunFolder(str(there)), held(here), Allowance(5000)))
        answers += 1

    assert answers > 4
    assert read_series(here) == read_series(there)


def test_a_file_that_was_replaced_is_sent_again(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    write(there, 1, [(step, 1.0) for step in range(100)])
    take(here, new_numbers(RunFolder(str(there)), {}, Allowance()))
    (there / "series/job-001.tsv").unlink()
    write(there, 1, [(1, 2.0)])

    take(here, new_numbers(RunFolder(str(there)), held(here), Allowance()))

    assert list(read_series(here)["loss"].values) == [2.0]


def test_a_cluster_cannot_write_elsewhere(tmp_path):
    piece = {"at": 0, "left": 0, "text": "x"}

    take(
        tmp_path / "here", {"../outside.tsv": piece, "series/../../x.tsv": piece, "series/x": piece}
    )

    assert list(tmp_path.iterdir()) == []
