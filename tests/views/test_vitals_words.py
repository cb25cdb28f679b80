"""The vitals of a run in a line of `status`."""

from rabaska.domain.runs import RunState, RunStatus
from rabaska.views.vitals import remarks

NODE = {
    "gpu0 use": 0.93, "gpu0 power": 250.0, "gpu1 use": 0.9, "gpu1 power": 240.0,
    "cores used": 5.12, "cores granted": 8.0, "memory used": 12e9, "memory limit": 64e9,
}  # fmt: skip


def told(state=RunState.RUNNING, **nodes):
    run = RunStatus("cats-1", "tamia", state, vitals=nodes)
    return [(remark.label, remark.text) for remark in remarks(run)]


def test_a_line_for_a_node():
    words = "GPUs 93%, 90% used, 490 W; 5.1 of 8 cores; 12 GB of 64 GB of memory"

    assert told(n1=NODE) == [("vitals of n1", words)]


def test_of_many_nodes_some_are_named():
    nodes = {f"n{number}": NODE for number in range(5)}

    assert [label for label, _ in told(**nodes)] == [
        "vitals of n0", "vitals of n1", "vitals of n2", "vitals",
    ]  # fmt: skip


def test_a_node_without_gpus_and_limits():
    assert told(n1={"memory used": 5e8}) == [("vitals of n1", "500 MB of memory")]


def test_errors_of_a_gpu_are_a_warning():
    assert ("warning", "gpu0 of n1 has 2 errors") in told(n1={**NODE, "gpu0 errors": 2.0})


def test_after_the_end_nothing_is_told():
    assert told(RunState.FINISHED, n1=NODE) == []
