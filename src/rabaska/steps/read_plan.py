"""Read the plan of a run on its cluster, for another submission of the run or to show it."""

import re

from rabaska.domain import untrusted
from rabaska.errors import CommandFailed
from rabaska.node.record.plan import Plan, WrongFormat, from_json
from rabaska.records.run_index import NAME, RunRecord
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.run_identity import gone, guarded, refuse_other

_NUMBER = (int, None)
PLAN = {
    "run": NAME,
    # Both become paths on this computer, from which files are sent.
    "code": re.compile("[0-9A-Za-z]*"),
    "datasets": [{"pack": re.compile(r"(?!\.)[^/\x00]*")}],
    # What the next job is made of.
    "about": {
        "setup": [str],
        "account": str,
        "queue": str,
        "features": [str],
        "mail": str,
        "native": [str],
        "resources": {
            "walltime": untrusted.TIME,
            "gpus?": int,
            "gpu_model?": str,
            "nodes?": int,
            "tasks?": int,
            "cores?": _NUMBER,
            "memory?": _NUMBER,
            "exclusive?": bool,
        },
    },
}
_NO_PLAN = 97  # how the script that reads a plan ends where there is none


def read_plan(record: RunRecord, cluster: ConnectedCluster) -> Plan:
    file = quoted([record.path + "/run.json"])
    reading = guarded(record, f"[ -e {file} ] || exit {_NO_PLAN}\ncat {file}")
    outcome = surely(lambda: cluster.place.run(reading))
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code == _NO_PLAN:
        raise gone(record)
    if outcome.exit_code != 0:
        raise CommandFailed(f"the plan of {record.name} cannot be read", why=outcome.complaint)
    try:
        return from_json(untrusted.read(outcome.output, PLAN))
    except (WrongFormat, ValueError, TypeError, KeyError, AttributeError) as problem:
        raise _damaged(record, problem) from None


def read_script(record: RunRecord, cluster: ConnectedCluster) -> str:
    """The job script as it was submitted first; "" where it is gone."""
    return cluster.place.run(f"cat {quoted([record.path + '/job.sh'])}").output


def _damaged(record: RunRecord, problem: Exception) -> CommandFailed:
    return CommandFailed(
        f"the plan of {record.name} is damaged",
        why=f"{record.path}/run.json: {problem}",
        hint=f"`rabaska fetch {record.name}` brings what the run saved; "
        "`rabaska run` begins another one",
    )
