"""Resume: another round of links for a run that stopped before it was finished."""

import json
from dataclasses import replace

from rabaska.domain.jobs import JobId, JobSpec
from rabaska.domain.runs import RunState
from rabaska.errors import CommandFailed, WrongUse
from rabaska.journeys.growth import MORE
from rabaska.journeys.push import complete
from rabaska.journeys.station import Station, station_of
from rabaska.journeys.status import status
from rabaska.journeys.submit import more_script, script, spec_of, submit
from rabaska.node.record.plan import Plan, from_json
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord, remember
from rabaska.remote.place import quoted, surely


def resume(record: RunRecord, home: Home, *, links: int | None = None) -> JobId:
    """Submit the run again; it goes on from its newest valid checkpoint."""
    now = status(record, home)
    if now.state is RunState.FINISHED:
        raise WrongUse(f"run {record.name} is finished", hint="`rabaska fetch` brings its results")
    if not now.state.over and now.state is not RunState.UNKNOWN:
        raise WrongUse(f"run {record.name} is {now.state.value}; there is nothing to resume")
    there = station_of(record, home)
    plan = read_plan(record, there)
    complete(there, plan, home)
    spec = spec_of(plan, there, links=links or plan.links)
    name = _write_script(plan, there, spec)
    job = submit(spec, there, script_name=name, resume=True)
    remember(home.runs, replace(record, job=job.native))
    return job


def read_plan(record: RunRecord, there: Station) -> Plan:
    outcome = surely(lambda: there.place.run(f"cat {quoted([record.path + '/run.json'])}"))
    if outcome.exit_code != 0:
        raise CommandFailed(f"the plan of {record.name} cannot be read", why=outcome.complaint)
    return from_json(json.loads(outcome.output))


def _write_script(plan: Plan, there: Station, spec: JobSpec) -> str:
    """A script of its own for each round, so that the one that ran stays to be read."""
    setup = tuple(plan.about["setup"])
    if plan.growth.words:
        _written(f"name={MORE}", more_script(spec, there, setup), plan, there)
    count = "n=$(ls job.sh job-[0-9]*.sh 2>/dev/null | wc -l)"
    naming = f"rm -f STOP && {count} && name=job-$((n + 1)).sh"
    return _written(naming, script(spec, there, setup), plan, there)


def _written(naming: str, text: str, plan: Plan, there: Station) -> str:
    """The name that the shell words `naming` gave to a script of the run."""
    outcome = there.place.run(
        f"cd {quoted([there.run_folder(plan.run)])} && {naming}"
        ' && cat > "$name.partial" && mv "$name.partial" "$name" && echo "$name"',
        feed=text.encode(),
    )
    if outcome.exit_code != 0:
        raise CommandFailed(f"no script could be written for {plan.run}", why=outcome.complaint)
    return outcome.output.strip()
