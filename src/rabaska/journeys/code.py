"""Code: the node of a run as a host of ssh, for editors, inside the job and its limits."""

import base64

from rabaska.domain.projects import Project
from rabaska.domain.runs import Checks, Labels
from rabaska.errors import CommandFailed
from rabaska.journeys.run import run
from rabaska.node.job.page_server import CODE
from rabaska.node.job.relay import SSH
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, find, remembered
from rabaska.remote import ssh_entries
from rabaska.remote.place import quoted
from rabaska.remote.relayed import join_standard
from rabaska.remote.ssh_entries import SshHost
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.job_server import job_at_work, live_session, relayed, session, until_running
from rabaska.steps.progress import Reporter
from rabaska.steps.run_identity import in_folder, refuse_other


def started(
    project: Project, on: str, home: Home, reporter: Reporter, *, new: bool = False
) -> RunRecord:
    """The job of this project that is there for editors, or a new one; when it runs."""
    record = None if new else live_session(CODE, on, project.folder, home)
    if record is None:
        labels = Labels(note="for editors", tags=(CODE,))
        wanted = session(project, CODE)
        submitted = run(wanted, on, home, reporter, checks=Checks(wanted=False), labels=labels)
        record = find(home.runs, submitted.run)
    else:
        reporter.step(f"{record.name} is still there; `--new` starts another one")
    until_running(record, home, reporter)
    return record


def as_host(record: RunRecord, home: Home) -> SshHost:
    """Make the running program's node a host: keys on both sides, and an entry for ssh."""
    job_at_work(record, home)
    cluster, name = connect_for(record, home), ssh_entries.host_name(record.name)
    place = home.folder / "ssh"
    known = {each.id or each.name for each in remembered(home.runs)}
    ssh_entries.forget_entries(place, known)
    folder = place / (record.id or record.name)
    host_key, public = ssh_entries.make_keys(folder, name)
    user = _send_keys(record, cluster, host_key, public)
    stream = ssh_entries.stream_command(record.id or record.name)
    config = ssh_entries.write_entry(folder, name, user, stream)
    host = SshHost(name, config)
    return SshHost(name, config, ssh_entries.tried(host))


def _send_keys(record: RunRecord, cluster: ConnectedCluster, host_key: bytes, public: str) -> str:
    """Put the server's keys into the run folder; the user's name there."""
    folder = quoted([f"{record.path}/servers/ssh"])
    encoded = base64.b64encode(host_key)  # fed, for everybody can read a script
    allowed = quoted([f"restrict,pty,port-forwarding {public}"])
    script = (
        f"set -e; umask 077; mkdir -p {folder}; base64 -d > {folder}/host_key; "
        f"echo {allowed} > {folder}/authorized_keys; id -un"
    )
    outcome = cluster.run(in_folder(record, script), feed=encoded)
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code != 0 or not outcome.output.strip():
        raise CommandFailed("the keys could not be written", why=outcome.complaint)
    return outcome.output.strip().splitlines()[-1]


def stream(record: RunRecord, home: Home) -> None:
    """Join our input and output with an ssh server inside the job; for ssh itself."""
    job = job_at_work(record, home)
    with relayed(record, job, SSH, home) as way:
        join_standard(way.connect())
