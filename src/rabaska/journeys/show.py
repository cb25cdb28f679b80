"""Show: a run's plan and the script that was submitted, as they were."""

from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.steps.connect import connect_for
from rabaska.steps.plan_run import PlannedRun, spec_of
from rabaska.steps.read_plan import read_plan, read_script


def show(record: RunRecord, home: Home) -> PlannedRun:
    cluster = connect_for(record, home)
    plan = read_plan(record, cluster)
    script = read_script(record, cluster)
    return PlannedRun(spec=spec_of(plan, cluster, jobs=plan.jobs), plan=plan, script=script)
