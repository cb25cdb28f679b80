"""The image of a container, made sure of before a job is submitted: sent, pulled, or there."""

from pathlib import Path

from rabaska.domain.projects import EnvironmentRecipe
from rabaska.environments import containers, recipes
from rabaska.environments.job_lines import BuildSite
from rabaska.environments.recipes import BuiltEnvironment
from rabaska.errors import EnvironmentFailed
from rabaska.remote.place import Outcome, Parcel, quoted
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import Reporter, progress_of


def bring_image(
    recipe: EnvironmentRecipe, site: BuildSite, cluster: ConnectedCluster, reporter: Reporter
) -> BuiltEnvironment:
    """Where the image lies; EnvironmentFailed where it cannot be had."""
    image = containers.place(recipe, site.envs)
    if recipe.here is not None:
        _send(recipe.here, image, cluster, reporter)
    elif containers.is_address(recipe.image):
        _pull(recipe, image, site, cluster, reporter)
        return BuiltEnvironment(archive=image)
    _try(recipe, image, site, cluster, reporter)
    return BuiltEnvironment(archive=image)


def _send(source: Path, image: str, cluster: ConnectedCluster, reporter: Reporter) -> None:
    if cluster.place.run(f"touch -c {quoted([image])}; test -e {quoted([image])}").exit_code == 0:
        return
    if source.is_dir():
        raise EnvironmentFailed(
            f"{source} is a folder",
            why="an image is one file",
            hint=f"`apptainer build {source.name}.sif {source.name}` makes one of it",
        )
    progress = progress_of(source.name, reporter)
    cluster.place.deliver([Parcel(source, image)], cluster, progress)
    reporter.step(f"image {source.name}: 1 file in the store")


def _pull(
    recipe: EnvironmentRecipe,
    image: str,
    site: BuildSite,
    cluster: ConnectedCluster,
    reporter: Reporter,
) -> None:
    if cluster.place.run(f"touch -c {quoted([image])}; test -e {quoted([image])}").exit_code == 0:
        return
    reporter.step(f"image {recipe.image}: pulled once on {cluster.name}")
    script = containers.pull_script(recipe.image, image, recipes.on_login(recipe, site))
    outcome = cluster.place.run(script)
    if outcome.exit_code == containers.NO_RUNTIME:
        raise _no_runtime(cluster)
    if outcome.exit_code != 0:
        raise EnvironmentFailed(
            f"the image {recipe.image} cannot be pulled on {cluster.name}",
            why=_last_words(outcome),
            hint=f"where {cluster.name} has no internet: `apptainer pull image.sif {recipe.image}` "
            'on this computer, and `image = "image.sif"` under [environment]; nothing was '
            "submitted",
        )


def _try(
    recipe: EnvironmentRecipe,
    image: str,
    site: BuildSite,
    cluster: ConnectedCluster,
    reporter: Reporter,
) -> None:
    lines = [*recipes.on_login(recipe, site), containers.question(image)]
    outcome = cluster.place.run("\n".join(lines))
    if outcome.exit_code == containers.NO_RUNTIME:
        if cluster.cluster.is_here:
            raise _no_runtime(cluster)
        # Some sites have it on their compute nodes only; the job says so where they have not.
        reporter.warn(
            f"no apptainer or singularity on the login node of {cluster.name}: if its nodes need "
            "a module for it, name that in `modules` under [environment]"
        )
    elif outcome.exit_code != 0:
        raise EnvironmentFailed(
            f"there is no image {image} on {cluster.name}",
            why=outcome.complaint or "it cannot be read",
            hint="`image` under [environment] is as the cluster sees it, if it begins with `/`, "
            "`~` or `$`; nothing was submitted",
        )


def _no_runtime(cluster: ConnectedCluster) -> EnvironmentFailed:
    return EnvironmentFailed(
        f"there is no apptainer or singularity on {cluster.name}",
        why="neither is in PATH once the modules are loaded",
        hint='name the module that has it, as in `modules = ["apptainer"]` under [environment] '
        f"(`module avail` on {cluster.name} lists them); nothing was submitted",
    )


def _last_words(outcome: Outcome) -> str:
    """The last line that says why; before it, tools tell what they do."""
    lines = [line for line in outcome.complaint.splitlines() if line.strip()]
    fatal = [line for line in lines if "FATAL" in line or "ERROR" in line]
    return (fatal or lines or [f"exit code {outcome.exit_code}"])[-1]
