"""Pick what a project's jobs request and nobody wrote: by its source, its packages, the profile."""

from rabaska.checkup.pinned_packages import read as read_requirements
from rabaska.domain.clusters import Cluster
from rabaska.domain.default_request import Picked, ProgramNeeds, pick
from rabaska.domain.gpus import Gpu
from rabaska.domain.projects import Project
from rabaska.knowledge.gpu_facts import build_of, gpus
from rabaska.steps.connect import scheduler_of
from rabaska.steps.progress import Reporter


def with_request(project: Project, cluster: Cluster, reporter: Reporter) -> Project:
    """The project with all that its jobs request; what was picked is told in one line."""
    picked = pick_request(project, cluster)
    if picked.words:
        reporter.step(f"picked for {cluster.name}: {picked.sentence}")
    return picked.project


def pick_request(project: Project, cluster: Cluster) -> Picked:
    if cluster.is_here or not project.left_out:
        return Picked(project)
    needs = ProgramNeeds(gpu_line(project), unfit_gpus(project.environment.requirements))
    return pick(project, cluster, needs, frozenset(scheduler_of(cluster).capabilities.shares))


def gpu_line(project: Project) -> str:
    """The line of source by which the program uses a GPU; "" where none does, or it was written."""
    if "gpus" not in project.left_out:
        return ""
    from rabaska.checkup.subject import started_by
    from rabaska.scouting import script_traits, scripts

    script = started_by(project, scripts.find(project.folder))
    found = script_traits.gpus(script) if script else None
    return str(found[1]) if found else ""


def unfit_gpus(requirements: str) -> dict[str, str]:
    """The GPUs that a pinned framework holds no code for, each with the reason."""
    found: dict[str, str] = {}
    for each in read_requirements(requirements):
        build = build_of(each.name, each.version, each.cuda) if each.version else None
        if build is None:
            continue
        version = ".".join(map(str, each.version))
        for name, gpu in gpus().items():
            if not _runs(gpu) or (gpu.capability and not build.runs_on(gpu)):
                found[name] = f"{each.name} {version} holds no code for {name.upper()}"
    return found


def _runs(gpu: Gpu) -> bool:
    """Official builds are for CUDA; others are the site's own affair."""
    return gpu.backend == "cuda"
