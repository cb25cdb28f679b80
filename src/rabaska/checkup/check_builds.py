"""Checks of the builds of frameworks: for the GPU of a cluster, or for none, and their size."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rabaska.checkup.check_data import disk_on_node
from rabaska.checkup.finding import Finding
from rabaska.checkup.pinned_packages import Requirement, read
from rabaska.checkup.subject import Subject, own_line
from rabaska.domain.amounts import say_size
from rabaska.domain.gpus import Gpu, parsed
from rabaska.domain.queue_limits import line
from rabaska.knowledge.gpu_facts import build_for, build_of, newest_build
from rabaska.knowledge.packages import brought, download_size, packages

_FRAMEWORKS = {"torch": "torch", "tensorflow": "tensorflow", "tensorflow-gpu": "tensorflow"}
_NEWEST_GPU_NEEDS = (2, 5, 1)  # of torch in the Alliance's wheelhouse, for H100
_INDEX = "--extra-index-url https://download.pytorch.org/whl/"
_ROCM = "2.9.1+rocm6.4"  # of torch; it has code for the MI200 and MI300 series
_LARGE = ("torch",)  # packages whose builds differ by gigabytes
CUDA = ("nvidia-", "cuda-", "triton")
_WORTH_TELLING = 5 * 10**8  # bytes
_FILLED = 0.9  # of a disk: data, code and what the program writes lie there too
_INSTALLED = 3  # times the size of the wheels: they lie beside what they become


def checks(subject: Subject) -> Iterator[Finding]:
    listed = read(subject.project.environment.requirements)
    yield from builds(subject, listed)
    chosen = as_chosen(listed, subject.chosen)
    yield from _without_gpu(subject, chosen)
    yield from _estimated(subject, chosen)


def as_chosen(listed: tuple[Requirement, ...], pins: Sequence[str]) -> tuple[Requirement, ...]:
    """The same packages, with the version and the build that pip would take, where it was asked."""
    chosen = {each.name: each for each in read("\n".join(pins))}
    named = {each.name for each in listed}
    pinned = [
        replace(each, version=chosen[each.name].version, cuda=chosen[each.name].cuda or each.cuda)
        if each.name in chosen
        else each
        for each in listed
    ]
    brought_along = [name for name in _LARGE if name in chosen and name not in named]
    along = [replace(chosen[name], line=0) for name in brought_along]
    return (*pinned, *along)


def framework_lines(requirements: str) -> tuple[str, ...]:
    """The lines of large frameworks, also of those that others bring along."""
    listed = read(requirements)
    own = {each.name: each for each in listed if not each.elsewhere}
    texts = requirements.splitlines()
    return tuple(
        texts[own[name].line - 1].strip() if name in own else name
        for name in _LARGE
        if name in brought(own)
    )


def is_in_doubt(subject: Subject) -> bool:
    """Whether something would be said that the build of a framework decides."""
    listed = read(subject.project.environment.requirements)
    return any((*_without_gpu(subject, listed), *_estimated(subject, listed)))


def builds(subject: Subject, listed: tuple[Requirement, ...]) -> Iterator[Finding]:
    """Frameworks whose build has no code for the GPU; certain only where a version is pinned."""
    gpu = subject.gpu
    for requirement in listed if gpu else ():
        framework = _FRAMEWORKS.get(requirement.name, "")
        if not gpu or not framework or requirement.elsewhere:
            continue
        if subject.cluster.wheelhouse:
            # The site builds its own wheels, for its own GPUs; only their first versions count.
            old = requirement.version and requirement.version < _NEWEST_GPU_NEEDS
            if framework == "torch" and gpu.name == "h100" and old:
                advice = f"write `torch==2.5.1` in {subject.requirements_file}, or a newer one"
                yield _finding(subject, requirement, gpu, f"for the H100, {advice}")
        elif gpu.backend == "rocm":
            yield from _of_cuda(subject, requirement, gpu)
        else:
            yield from _old_or_new(subject, requirement, gpu, framework)


def _old_or_new(
    subject: Subject, requirement: Requirement, gpu: Gpu, framework: str
) -> Iterator[Finding]:
    pinned = bool(requirement.version)
    build = (
        build_of(framework, requirement.version, requirement.cuda)
        if pinned
        else newest_build(framework, requirement.cuda, requirement.below)
    )
    if gpu.capability and build and not build.runs_on(gpu):
        known = requirement if pinned else replace(requirement, version=parsed(build.last))
        advice = _other_build(subject, known, gpu, framework)
        yield _finding(subject, known, gpu, advice, certain=pinned)


def _of_cuda(subject: Subject, requirement: Requirement, gpu: Gpu) -> Iterator[Finding]:
    """What pip installs is built for CUDA, unless it comes from an index of ROCm."""
    if requirement.name == "torch" and not requirement.cuda.startswith("rocm"):
        lines = f"`{_INDEX}{_ROCM.partition('+')[2]}` and `torch=={_ROCM}`"
        advice = f"for the {gpu.name.upper()}, write {lines} in {subject.requirements_file}"
        yield _finding(subject, requirement, gpu, advice, certain=False)


def _finding(
    subject: Subject, requirement: Requirement, gpu: Gpu, advice: str, *, certain: bool = True
) -> Finding:
    version = ".".join(map(str, requirement.version)) or "as pip installs it"
    build = f"+{requirement.cuda}" if requirement.cuda and requirement.version else ""
    why = "it would stop with `no kernel image is available for execution on the device`"
    return Finding(
        "environment.build",
        f"{requirement.name} {version}{build} has no code for a {gpu.name.upper()}",
        f"{subject.requirements_file}, line {requirement.line}",
        why if gpu.backend == "cuda" else "it is built for CUDA, and finds no GPU there",
        advice,
        serious=certain,
        likely=True,
    )


def _other_build(subject: Subject, requirement: Requirement, gpu: Gpu, framework: str) -> str:
    """The lines to write, for this GPU and no other."""
    name = gpu.name.upper()
    other = build_for(framework, requirement.version, gpu)
    if other is None:
        return f"no official build of {framework} has code for a {name}: use another queue"
    version, build = other
    pinned = f"`{requirement.name}=={version}{f'+{build.cuda}' if build.cuda else ''}`"
    index = f"`{_INDEX}{build.cuda}` and " if build.cuda else ""
    needs = f", with a `python` of {build.python} or older" if build.python else ""
    return f"for the {name}, write {index}{pinned} in {subject.requirements_file}{needs}"


def _without_gpu(subject: Subject, listed: tuple[Requirement, ...]) -> Iterator[Finding]:
    """Gigabytes of CUDA that a job without a GPU would fetch and unpack for nothing."""
    if subject.project.resources.gpus or subject.cluster.wheelhouse:
        return
    names = {each.name for each in listed if not each.elsewhere}
    if "torch" not in brought(names) or any(each.cuda == "cpu" for each in listed):
        return
    cuda = [name for name in brought(names) if name.startswith(CUDA)]
    size = sum(packages()[name].size for name in cuda if name in packages())
    torch = next((each for each in listed if each.name == "torch"), None)
    where = f", line {torch.line}" if torch and torch.line else ""
    yield Finding(
        "environment.cuda",
        f"torch brings about {say_size(size)} of CUDA along, and the job requests no GPU",
        f"{subject.requirements_file}{where}",
        "they are fetched, sent and unpacked by every job for nothing",
        f"write the line `{_INDEX}cpu` in {subject.requirements_file}; or "
        + line("gpus", 1, subject.project),
        serious=False,
        likely=True,
    )


def _estimated(subject: Subject, listed: tuple[Requirement, ...]) -> Iterator[Finding]:
    """As the table of packages tells, where nobody has resolved them yet."""
    for found in too_large(subject, size_of(listed) * _INSTALLED):
        what = found.what.replace("at least", "about")
        yield replace(found, what=what, serious=False, likely=True)


def too_large(subject: Subject, size: int) -> Iterator[Finding]:
    """An environment that is made in the job takes room on the node's own disk."""
    recipe, disk = subject.project.environment, disk_on_node(subject)
    in_job = recipe.build != "once" and recipe.kind in ("virtualenv", "packed", "conda")
    if not disk or not in_job or subject.cluster.is_here or size <= _FILLED * disk.size:
        return
    fits = size <= disk.size
    seen = (
        "as an earlier job saw" if disk.host else f"as the profile of {subject.cluster.name} says"
    )
    yield Finding(
        "environment.room",
        f"the environment needs at least {say_size(size)} on the node's own disk",
        subject.requirements_file if recipe.kind == "virtualenv" else "[environment]",
        f"{disk} has {say_size(disk.size)} in all, {seen}{', shared with data' if fits else ''}",
        _elsewhere(subject, size),
        serious=not fits,
        likely=True,
    )


def _elsewhere(subject: Subject, size: int) -> str:
    """The line that keeps it in the store, and the queues whose disks would hold it."""
    if subject.project.environment.kind == "virtualenv":
        line = own_line(subject, "environment", "build", "once")
        keep = f"write {line}: then it is kept in the store"
    else:
        table = f"[cluster.{subject.cluster.name}.environment]"
        keep = f"unpack it on shared storage and name that folder as `path` under {table}"
    larger = [each.called for each in subject.cluster.partitions if each.local > size]
    larger += [name for name, disk in subject.cluster.disks.items() if name and disk.size > size]
    queues = f" ({', '.join(dict.fromkeys(larger))})" if larger else ""
    return f"{keep}; or use a queue whose nodes have a larger disk{queues}"


def size_of(listed: tuple[Requirement, ...]) -> int:
    """About how many bytes pip would fetch; 0 where that is little."""
    if any(each.cuda == "cpu" for each in listed):
        return 0
    size = download_size(each.name for each in listed if not each.elsewhere)
    return size if size >= _WORTH_TELLING else 0
