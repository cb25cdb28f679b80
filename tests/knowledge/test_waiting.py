"""Why jobs wait: reasons as schedulers spell them."""

from pathlib import Path

import pytest

from rabaska.domain.jobs import JobState
from rabaska.knowledge.queue_reasons import reason_for
from rabaska.schedulers import slurm_queues
from rabaska.schedulers.flux import Flux
from rabaska.schedulers.moab import Moab
from rabaska.schedulers.pbs import Pbs
from rabaska.schedulers.sge import Sge
from rabaska.schedulers.slurm import Slurm
from rabaska.schedulers.sqsub import Sqsub
from rabaska.schedulers.torque import Torque

RECORDINGS = Path(__file__).parent.parent / "recordings"
SCHEDULERS_RECORDED = (Slurm(), Pbs(), Torque(), Moab(), Sge(), Sqsub(), Flux())


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "BadConstraints",
        "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "InvalidAccount", "InvalidQOS",
        "QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit", "QOSMaxGRESPerJob",
        "QOSMinGRES", "launch failed requeued held",
        "Can Never Run: Insufficient amount of resource: ngpus (R: 9 A: 4 T: 4)",
        "held by its user (`qrls` lets it go)", "held by an operator",
        "Grid Engine could not start it; `qstat -explain E` on the cluster says why",
    ],
)  # fmt: skip
def test_a_job_that_cannot_start_as_it_is_is_known_as_such(reason):
    known = reason_for(reason)

    assert known is not None
    assert known.never
    assert known.fix


@pytest.mark.parametrize(
    "reason",
    ["QOSMaxJobsPerUserLimit", "AssocGrpCPUMinutesLimit", "QOSGrpGRES", "PartitionDown",
     "ReqNodeNotAvail, May be reserved for other job", "Licenses",
     "Not Running: Queue not started.",
     "job 4761852 violates active HARD MAXPROC limit of 160 for user alice"],
)  # fmt: skip
def test_a_job_that_starts_one_day_is_not_given_up(reason):
    known = reason_for(reason)

    assert known is not None
    assert not known.never


@pytest.mark.parametrize(
    "reason",
    ["Priority", "Resources", "Dependency", "JobArrayTaskLimit", "BeginTime",
     "waits for another job", "waits: afterany:71.hades",
     "Not Running: Not enough of the right type of nodes are available"],
)  # fmt: skip
def test_of_an_ordinary_reason_nothing_is_to_be_done(reason):
    known = reason_for(reason)

    assert known is not None
    assert known.ordinary
    assert not known.never


def test_no_reason_is_no_reason():
    assert reason_for("") is None


# JOB REASON CODES of squeue(1) and slurm.schedmd.com/job_reason_codes.html, Slurm 20.11 to 25.05.
LIMITED = ("BB", "Billing", "Cpu", "CPU", "Energy", "GRES", "License", "Mem", "Node", "Unknown")
NAMED = """AccountingPolicy AccountNotAllowed AssociationJobLimit AssociationResourceLimit
    AssociationTimeLimit AssocGrpJobsLimit AssocGrpSubmitJobsLimit AssocGrpWallLimit
    AssocMaxJobsLimit AssocMaxSubmitJobLimit AssocMaxWallDurationPerJobLimit BadConstraints
    BeginTime BurstBufferOperation BurstBufferResources BurstBufferStageIn Cleaning Constraints
    DeadLine Dependency DependencyNeverSatisfied FedJobLock FrontEndDown InactiveLimit
    InvalidAccount InvalidQOS JobArrayTaskLimit JobHeldAdmin JobHeldUser JobHoldMaxRequeue
    JobLaunchFailure Licenses MaxMemPerLimit MaxPoweredUpNodes MaxRequeue MaxBBPerAccount
    MaxBillingPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount MaxJobsPerAccount
    MaxLicensePerAccount MaxMemoryPerAccount MaxNodePerAccount MaxSubmitJobsPerAccount
    MpiPortsBusy NodeDown NonZeroExitCode OutOfMemory PartitionConfig PartitionDown
    PartitionInactive PartitionNodeLimit PartitionTimeLimit Priority Prolog QOSGrpJobsLimit
    QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSJobLimit QOSMaxJobsPerUserLimit
    QOSMaxSubmitJobPerUserLimit QOSMaxWallDurationPerJobLimit QOSMaxCpuPerUserLimit
    QOSMaxGRESPerUser QOSMaxMemoryPerUser QOSMaxNodePerUserLimit QOSMinCpuNotSatisfied QOSMinGRES
    QOSMinMemory QOSMinNode QOSNotAllowed QOSResourceLimit QOSTimeLimit QOSUsageThreshold
    RaisedSignal:9 ReqNodeNotAvail Reservation ReservationDeleted Resources SchedDefer
    SystemFailure TimeLimit"""
SLURM = (
    *NAMED.split(),
    *(f"{of}Grp{what}{how}" for of in ("Assoc", "QOS") for what in LIMITED
      for how in ("", "Limit", "Minutes", "RunMinutes")),
    *(f"{of}Max{what}{how}" for of in ("Assoc", "QOS") for what in LIMITED
      for how in ("PerJob", "PerNode", "MinutesPerJob")),
    "launch failed requeued held", "job requeued in held state",
    "job requeued in special exit state", "user env retrieval failed requeued held",
    "ReqNodeNotAvail, UnavailableNodes:c[1-2]",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
)  # fmt: skip


@pytest.mark.parametrize("reason", SLURM)
def test_every_reason_of_slurm_has_words_and_something_to_do(reason):
    known = reason_for(reason)

    assert known is not None
    assert known.meaning.endswith(".")
    assert known.fix


@pytest.mark.parametrize(
    "reason", ["AssocGrpBillingMinutes", "QOSGrpCPUMinutesLimit", "AssocGrpGRESMinutes"]
)
def test_time_that_is_used_up_does_not_come_back_when_other_jobs_end(reason):
    known = reason_for(reason)

    assert "used up" in known.meaning
    assert "some of them end" not in known.fix


def test_minutes_of_running_jobs_come_back_when_these_end():
    assert "some of them end" in reason_for("AssocGrpCPURunMinutesLimit").fix


def test_a_reason_that_slurm_itself_does_not_know_is_not_called_a_wrong_account():
    known = reason_for("AccountingPolicy")

    assert not known.never
    assert "may not be used" not in known.meaning


RECORDED = [
    (scheduler.name, path.name, status.reason)
    for scheduler in SCHEDULERS_RECORDED
    for path in sorted((RECORDINGS / scheduler.name).glob("*.txt"))
    for status in scheduler.read_status(path.read_text(errors="replace")).values()
    if status.state in (JobState.QUEUED, JobState.HELD) and status.reason
]


@pytest.mark.parametrize(("scheduler", "path", "reason"), sorted(set(RECORDED)))
def test_what_schedulers_were_seen_to_say_of_a_job_that_waits_has_words(scheduler, path, reason):
    assert reason_for(reason) is not None


def test_there_are_recordings_of_jobs_that_wait():
    assert {"slurm", "pbs", "torque"} <= {scheduler for scheduler, _, _ in RECORDED}


# JOB STATE CODES of squeue(1) and slurm.schedmd.com/job_state_codes.html, Slurm 25.05.
STATES = """BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PENDING PREEMPTED
RUNNING SUSPENDED TIMEOUT COMPLETING CONFIGURING EXPEDITING LAUNCH_FAILED POWER_UP_NODE
RECONFIG_FAIL REQUEUED REQUEUE_FED REQUEUE_HOLD RESIZING RESV_DEL_HOLD REVOKED SIGNALING
SPECIAL_EXIT STAGE_OUT STOPPED UPDATE_DB"""


@pytest.mark.parametrize("state", STATES.split())
def test_every_state_of_slurm_is_a_state_of_ours(state):
    assert slurm_queues.status_of(state, "").state is not JobState.UNKNOWN


def test_a_job_that_got_sigstop_is_not_said_to_be_ending():
    assert slurm_queues.status_of("STOPPED", "").state is JobState.SUSPENDED


@pytest.mark.parametrize("state", ["PD", "R", "CG", "qw", "hqw", "*Q", "H", "TO"])
def test_the_letters_of_the_queues_lists_are_told_in_words(state):
    found = reason_for(state)
    assert found is not None
    assert found.ordinary
