"""Where a job stands in the line, when it might start, and how often it was queued again.

All of it is replayed: from what real servers printed where a recording has it, else from forms
that the vendors' manuals and public samples show; each test says which.
"""

import subprocess

from recorded import recorded

from rabaska.domain.jobs import JobState
from rabaska.schedulers.local import Local
from rabaska.schedulers.moab import Moab
from rabaska.schedulers.pbs import Pbs
from rabaska.schedulers.sge import Sge
from rabaska.schedulers.torque import Torque

# As a site's server printed it in 2023, in a public repository; shortened.
ESTIMATED = """\
Job Id: 7013474.pbs
    Job_Name = cats-7f3a
    job_state = Q
    queue = v1_gpu72
    comment = Not Running: Insufficient amount of resource: ngpus
    Submit_arguments = job.sh
    estimated.exec_vnode = (cx3-10-8:ncpus=4:mem=8388608kb:ngp
\tus=1)
    estimated.start_time = Tue Feb 14 02:10:01 2023
    project = _pbs_project_default

"""
SHOWSTART = """\
asked for 881201 at 1562925555
job 881201 requires 8 procs for 3:00:00

Estimated Rsv based start in                 1:03:31:22 on Sat Jul 13 16:10:37
Estimated Rsv based completion in            1:06:31:22 on Sat Jul 13 19:10:37

Best Partition: SharedMem
"""


def ran(script: str) -> str:
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout


def test_pbs_tells_when_a_waiting_job_might_start():
    assert Pbs().read_status(ESTIMATED)["7013474"].starts == "2023-02-14T02:10:01"


def test_a_recorded_pbs_tells_when_a_job_began_and_nothing_of_the_others():
    told = Pbs().read_status(recorded("pbs", "qstat.txt"))
    assert told["7"].starts == "2026-11-17T19:10:13"
    assert told["10"].starts == ""


def test_pbs_counts_how_often_a_job_began():
    """`run_count` as recorded, with another number."""
    text = recorded("pbs", "qstat.txt")
    assert Pbs().read_status(text)["7"].again == 0
    often = text.replace("run_count = 1\n", "run_count = 4\n", 1)
    assert Pbs().read_status(often)["7"].again == 3
    waits = often.replace("job_state = R", "job_state = Q", 1)
    assert Pbs().read_status(waits)["7"].again == 4


def test_a_recorded_torque_counts_how_often_a_job_began():
    told = Torque().read_status(recorded("torque", "qstat.txt"))
    assert told["15"].state is JobState.RUNNING
    assert (told["7"].again, told["15"].again) == (0, 1)


def test_a_recorded_grid_engine_says_that_a_job_was_started_again_and_not_how_often():
    """The letter R is of qstat(1); no recording has it."""
    text = recorded("sge", "qstat.xml")
    assert Sge().read_status(text)["9"].again == 0
    again = Sge().read_status(text.replace("<state>r</state>", "<state>Rr</state>"))["9"]
    assert (again.state, again.again) == (JobState.RUNNING, 1)


def test_grid_engine_lists_everybodys_jobs_in_their_order():
    """The order is qstat's own; other users' jobs were added to the recording."""
    told = Sge().read_status(recorded("sge", "qstat.xml") + "next 3\nnext 10\nnext 5\n")
    assert {key: one.place for key, one in told.items() if one.place} == {
        "10": 2, "5_2": 3, "5_3": 3, "5_4": 3,
    }  # fmt: skip


def test_grid_engine_is_asked_for_the_line_only_by_those_who_wait():
    table = (
        "job-ID  prior   name       user         state submit/start at     queue\\n----\\n"
        "      3 0.60000 other      bob          qw    11/15/2026 21:13:18\\n"
        "      6 0.55500 held       bob          hqw   11/15/2026 21:13:18\\n"
        "     10 0.25000 job10.sh   alice        qw    11/15/2026 21:13:18\\n"
    )
    xml = "<job_info><state>{}</state></job_info>"
    fake = f"""qstat() {{ case $* in *-xml*) echo "{xml}";; *) printf '{table}';; esac; }}; """
    command = Sge().status_command([])[2]
    waits = ran(fake.replace("{}", "qw") + command)
    assert waits == f"{xml.format('qw')}\nnext 3\nnext 10\n"
    assert ran(fake.replace("{}", "r") + command) == f"{xml.format('r')}\n"


def test_moab_guesses_when_the_first_waiting_jobs_start():
    """Documented forms; no real Moab was asked."""
    told = Moab().read_status(recorded("moab", "showq.xml") + SHOWSTART)
    assert told["881201"].starts == f"@{1562925555 + 27 * 3600 + 31 * 60 + 22}"
    assert told["881196"].starts == ""
    unknown = "asked for 881201 at 1562925555\nINFO:  cannot determine start time for job 881201\n"
    assert Moab().read_status(recorded("moab", "showq.xml") + unknown)["881201"].starts == ""


def test_moab_is_asked_for_a_start_only_of_jobs_that_wait(tmp_path):
    (tmp_path / "showq.xml").write_text(recorded("moab", "showq.xml").splitlines()[0])
    fake = f'showq() {{ cat {tmp_path}/showq.xml; }}; timeout() {{ echo "ran $*"; }}; '
    said = ran(fake + Moab().status_command([])[2])
    assert [line for line in said.splitlines() if line.startswith("ran")] == [
        "ran 5 showstart 881201"
    ]


def test_this_computer_knows_the_line():
    """As its own queue prints."""
    lines = (
        "here|3_1|RUNNING|||1.0||a|.\nhere|3_2|QUEUED||waits for the one before|||a|.\n"
        "here|12_1|QUEUED||waits for its turn|||c|.\nhere|12_2|QUEUED||waits for its turn|||c|.\n"
        "here|4_1|QUEUED||waits for its turn|||b|.\n"
    )
    told = Local(("python3",), "/queue").read_status(lines)
    assert {key: one.place for key, one in told.items()} == {
        "3_1": None, "3_2": None, "12_1": 2, "12_2": 2, "4_1": 1,
    }  # fmt: skip
