"""What accounting commands print of a job that is over."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.jobs import UsedResources
from rabaska.schedulers.accounted_usage import by_pbs, by_qacct, by_sacct
from rabaska.schedulers.pbs import Pbs
from rabaska.schedulers.sge import Sge
from rabaska.schedulers.slurm import Slurm

RECORDINGS = Path(__file__).parent.parent / "recordings"
SACCT = """\
12_1|OUT_OF_MEMORY|0:125|None|3661|01:02.500|4||4000M
12_1.batch|OUT_OF_MEMORY|0:125||3661|01:02.500|4|3900000K|
12_1.extern|COMPLETED|0:0||3661|00:00.001|4|912K|
13|COMPLETED|0:0|None|60|1-00:00:01|2||1Gc
"""


def test_the_memory_of_a_job_is_that_of_its_largest_step():
    found = Slurm().read_history(SACCT)

    assert set(found) == {"12_1", "13"}
    assert found["12_1"].used == UsedResources(3661, 62.5, 4, 3900000 * 2**10, 4000 * 2**20)
    assert found["12_1"].spelled == "OUT_OF_MEMORY"


def test_memory_per_core_is_counted_for_all_cores():
    used = by_sacct(SACCT)["13"]

    assert used.memory_limit == 2 * 2**30
    assert used.memory is None
    assert used.processor == 86401


def test_grid_engine_and_pbs_count_as_well():
    sge = Sge().read_history((RECORDINGS / "sge/qacct.txt").read_text())
    pbs = Pbs().read_history((RECORDINGS / "pbs/qstat-x.txt").read_text())

    assert any(status.used and status.used.cores == 1 for status in sge.values())
    assert any(status.used and status.used.memory for status in sge.values())
    assert any(status.used and status.used.cores == 1 for status in pbs.values())


def test_when_a_job_should_start_is_read_and_a_name_may_hold_bars():
    line = "slurm|7|PENDING|Priority|(null)|a|b|{}|.\n"

    found = Slurm().read_status(line.format("2026-11-15T21:05:27"))["7"]
    never = Slurm().read_status(line.format("N/A"))["7"]

    assert (found.starts, found.carries) == ("2026-11-15T21:05:27", ("a|b",))
    assert (never.starts, never.carries) == ("", ("a|b",))


@given(text=st.text(), fields=st.dictionaries(st.sampled_from(
    ["slots", "ru_maxrss", "ru_wallclock", "cpu", "resources_used.mem", "resources_used.cput"]),
    st.text()))  # fmt: skip
def test_no_text_makes_a_reader_fail(text, fields):
    by_sacct(text)
    by_qacct(fields)
    by_pbs(fields)
