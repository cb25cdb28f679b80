"""Doctor: what would go wrong with a project, said before it waits a night in a queue."""

from pathlib import Path

from rabaska.checkup import answers
from rabaska.checkup.examination import examine
from rabaska.checkup.findings import Finding, SafeFix
from rabaska.checkup.subject import Subject, look
from rabaska.domain.clusters import Cluster
from rabaska.domain.projects import Project
from rabaska.domain.shellwords import expanding
from rabaska.errors import Unreachable
from rabaska.journeys.station import cluster_named, place_of
from rabaska.journeys.telling import Teller
from rabaska.node import files
from rabaska.records.home import Home

_SETTINGS = "rabaska.toml"


def diagnose(project: Project, on: str, home: Home) -> tuple[Finding, ...]:
    """Everything that can be found, the cluster itself asked where there is one to ask."""
    cluster = cluster_named(on, home)
    subject = look(project, cluster)
    return examine(subject) + _asked(subject)


def warn(project: Project, cluster: Cluster, teller: Teller) -> None:
    """What `run` should tell: the serious findings, without reading data or asking anybody."""
    found = examine(look(project, cluster, thorough=False))
    serious = [each for each in found if each.serious and each.id != "cluster.gone"]
    for each in serious:
        teller.warn(f"{each.what} ({each.where}): {each.fix}")
    rest = len(found) - len(serious)
    if serious and rest:
        teller.warn(f"`rabaska doctor --on {cluster.name}` tells {rest} more")


def mend(project: Project, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """Do what is safe; a sentence for each thing that was done."""
    fixes = dict.fromkeys(each.safe_fix for each in found if each.safe_fix)
    return tuple(_mended(fix, project.folder) for fix in fixes)


def _mended(fix: SafeFix, folder: Path) -> str:
    if fix.kind == "variable":
        _set_variable(folder / _SETTINGS, fix.target, fix.value)
        return f"set {fix.target}={fix.value} in {_SETTINGS}"
    path = folder / fix.target
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    mode = path.stat().st_mode
    files.write_whole(str(path), content)
    path.chmod(mode)
    return f"gave {fix.target} Unix line ends"


def _set_variable(path: Path, name: str, value: str) -> None:
    """Into [environment.variables], with all else in the file as it was."""
    import tomlkit  # `run` asks for warnings only, and should not wait for this

    written = tomlkit.parse(path.read_text("utf-8"))
    environment = written.setdefault("environment", tomlkit.table(is_super_table=True))
    variables = environment.setdefault("variables", tomlkit.table())
    variables[name] = value
    files.write_whole(str(path), tomlkit.dumps(written))


def _asked(subject: Subject) -> tuple[Finding, ...]:
    cluster = subject.cluster
    if cluster.is_here or cluster.status != "live" or "{" in cluster.store.replace("${", ""):
        return ()
    script = answers.question(
        expanding(cluster.store or "~/rabaska"), scheduler=cluster.scheduler,
        account_form=cluster.account_form, quota=cluster.quota,
    )  # fmt: skip
    try:
        outcome = place_of(cluster).run(script)
    except Unreachable as problem:
        return (
            Finding("cluster.ssh", problem.what, f"--on {cluster.name}", problem.why, problem.hint),
        )
    return tuple(answers.checks(subject, answers.answers(outcome.output)))
