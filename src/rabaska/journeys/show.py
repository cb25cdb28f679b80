"""Show: a run's plan and the script that was submitted, as they were."""

from rabaska.journeys.resume import read_plan
from rabaska.journeys.station import station_of
from rabaska.journeys.submit import Voyage, spec_of
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import quoted


def show(record: RunRecord, home: Home) -> Voyage:
    there = station_of(record, home)
    plan = read_plan(record, there)
    script = there.place.run(f"cat {quoted([record.path + '/job.sh'])}").output
    return Voyage(spec=spec_of(plan, there, jobs=plan.jobs), plan=plan, script=script)
