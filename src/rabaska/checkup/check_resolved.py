"""Checks of the packages that pip chose for a job, before anything else is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rabaska.checkup import check_builds
from rabaska.checkup.check_builds import builds, too_large
from rabaska.checkup.check_imports import (
    ALSO_NEEDS,
    has_other_sources,
    packages_with,
    unlisted,
    wanted_modules,
)
from rabaska.checkup.finding import Finding
from rabaska.checkup.pinned_packages import plain_name, read
from rabaska.checkup.subject import Subject

_CUDA = "environment.cuda"


@dataclass(frozen=True)
class Resolved:
    """What will be installed."""

    packages: Sequence[str]  # `torch==2.5.1`
    modules: Sequence[str]  # read from their wheels
    unread: Sequence[str] = ()  # packages whose wheels are not at hand
    room: int = 0  # bytes that it takes on the node's disk at least; 0: not known

    @property
    def names(self) -> set[str]:
        return {plain_name(pin.partition("==")[0]) for pin in self.packages}


def checks(subject: Subject, resolved: Resolved) -> Iterator[Finding]:
    yield from too_large(subject, resolved.room)
    if not resolved.packages or has_other_sources(subject):
        return
    yield from _without_gpu(subject, resolved)
    chosen = f"what pip chose for {subject.requirements_file}"
    for finding in builds(subject, read("\n".join(resolved.packages))):
        yield replace(finding, where=chosen)
    for module, found in wanted_modules(subject).items():
        if not _has(resolved, module):
            # A wheel that nobody has read may have any module; but not one of another package.
            certain = not resolved.unread or bool(packages_with(module))
            yield unlisted(subject, module, found, certain=certain)


def _without_gpu(subject: Subject, resolved: Resolved) -> Iterator[Finding]:
    """CUDA that pip chose though nobody expected it; once told, it is not told again."""
    told = [*check_builds.checks(subject)]
    if any(name.startswith(check_builds.CUDA) for name in resolved.names):
        subject = replace(subject, chosen=tuple(resolved.packages))
        now = [*check_builds.checks(subject)]
        yield from (each for each in now if each.id == _CUDA and each not in told)


def _has(resolved: Resolved, module: str) -> bool:
    if {*packages_with(module), plain_name(module)} & resolved.names:
        return True
    return module not in ALSO_NEEDS and module.partition(".")[0] in resolved.modules
