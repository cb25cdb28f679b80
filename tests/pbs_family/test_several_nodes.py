"""Programs of several processes on two nodes, reached by pbsdsh."""

import pytest
from tests.needs import torch_env
from tests.pbs_family.test_journeys import to_its_end
from tests.real.test_launch import DDP, MPI, STOPPABLE, WHO, lines_of, losses, project

MPIRUN = '\n[jobs]\nmpi = "mpirun"\n'


@pytest.fixture(scope="session")
def python():
    """A Python with torch and mpi4py that the nodes have."""
    return torch_env.build() / "bin" / "python"


def finished(passenger, run):
    _, told = to_its_end(passenger, run, 240)
    log = passenger.types("logs", run).output
    assert told["state"] == "finished", f"{told}\n{log}"
    return log


def left_on_nodes(cluster):
    """What jobs left in node-local space, and programs that still run."""
    look = "find /tmp /var/tmp /lscratch -name 'rabaska-*'; pgrep -f '[s]leep 600' || true"
    return {n.name: cluster.nodes.run(n.name, ["sh", "-c", look]) for n in cluster.site.nodes}


def test_every_process_has_code_and_data_and_knows_its_rank(cluster, passenger):
    project(passenger, WHO, "srun")

    run = passenger.run()
    finished(passenger, run)

    told = sorted(lines_of(passenger, run), key=lambda one: int(one["RANK"]))
    assert [one["RANK"] for one in told] == ["0", "1", "2", "3"]
    assert [one["LOCAL_RANK"] for one in told] == ["0", "1", "0", "1"]
    assert len({one["host"] for one in told}) == 2
    assert {one["data"] for one in told} == {3}
    assert {one["WORLD_SIZE"] for one in told} == {"4"}
    assert "train.py" in told[-1]["here"]
    assert not any(left_on_nodes(cluster).values())


def test_torchrun_on_two_nodes_trains_together(passenger, python):
    project(passenger, DDP, "torchrun", command=f"{python} train.py 12 0")

    run = passenger.run()
    log = finished(passenger, run)

    assert len(losses(log)) == 12


def test_an_mpi_program_runs_on_two_nodes(passenger, python):
    project(passenger, MPI, "mpi", command=f"{python} train.py")
    passenger.profile.write_text(passenger.profile.read_text() + MPIRUN)

    run = passenger.run()
    finished(passenger, run)

    told = sorted(lines_of(passenger, run), key=lambda one: one["rank"])
    assert [one["rank"] for one in told] == [0, 1, 2, 3]
    assert {(one["size"], one["total"]) for one in told} == {(4, 10)}
    assert len({one["host"] for one in told}) == 2


def test_mpi_without_a_way_to_start_it_is_refused(passenger):
    project(passenger, MPI, "mpi")

    refused = passenger.types("run", "--on", "lab", "--no-doctor", code=3)

    assert "cannot start an MPI program" in refused.errors


@pytest.mark.parametrize("launch", ["srun", "torchrun"])
def test_every_process_on_every_node_is_asked_to_save(cluster, passenger, python, launch):
    saved = "[checkpoints]\n        patterns = ['saved-*.npy']"
    project(passenger, STOPPABLE, launch, command=f"{python} train.py", more=saved)
    run = passenger.run("--jobs", "1")
    ready = ["ready 0", "ready 1", "ready 2", "ready 3"]
    passenger.until(lambda told: all(word in told["tail"] for word in ready), run, 120)

    passenger.types("cancel", run)
    passenger.until(lambda told: told["state"] == "cancelled", run)

    output = cluster.path(f"{passenger.store}/runs/{run}/carried/001/output")
    found = sorted(path.name for path in output.glob("saved-*"))
    assert found == [f"saved-{rank}.npy" for rank in range(4)]
    cluster.wait_until(lambda: not any(left_on_nodes(cluster).values()))


def test_nothing_runs_on_any_node_once_the_agent_was_killed(cluster, passenger):
    project(passenger, STOPPABLE, "srun")
    run = passenger.run("--jobs", "1", "--at-most", "1")
    told = passenger.until(lambda told: "ready 3" in told["tail"], run, 120)

    cluster.kill(told["jobs"][0]["pid"], told["jobs"][0]["host"])

    def helpers():
        look = ["sh", "-c", "pgrep -f '[s]leep 600' || true"]
        return [cluster.nodes.run(n.name, look) for n in cluster.site.nodes]

    cluster.wait_until(lambda: not any(helpers()))
