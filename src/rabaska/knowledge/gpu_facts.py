"""What is known of GPUs and of the builds of frameworks: facts in gpus.toml."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rabaska.domain.amounts import size
from rabaska.domain.gpus import Build, Gpu, Version, parsed

# Builds for these were made beside the default one, with code for the same old GPUs.
_SAME_CODE = r"cu(9|10|11)\d"


@cache
def gpus() -> Mapping[str, Gpu]:
    return {name: _gpu(name, facts) for name, facts in _facts()["gpu"].items()}


@cache
def builds() -> tuple[Build, ...]:
    return tuple(_build(facts) for facts in _facts()["build"])


def build_of(framework: str, version: Version, cuda: str = "") -> Build | None:
    """The build that was pinned; None when nothing is known of it, which is no bad sign."""
    fitting = [build for build in builds() if build.is_meant(framework, version, cuda)]
    if not fitting and re.fullmatch(_SAME_CODE, cuda) and version < (2, 1):
        fitting = [build for build in builds() if build.is_meant(framework, version, "")]
    return fitting[-1] if fitting else None


def newest_build(framework: str, cuda: str = "", below: Version = ()) -> Build | None:
    """What pip would take where no version is pinned, or only a limit is."""
    fitting = [build for build in builds() if (build.framework, build.cuda) == (framework, cuda)]
    fitting = [build for build in fitting if not below or build.since < below]
    return max(fitting, key=lambda build: build.since, default=None)


def build_for(framework: str, version: Version, gpu: Gpu) -> tuple[str, Build] | None:
    """The version and build to take instead: the same version if there is one for this GPU."""
    fitting = [each for each in builds() if each.framework == framework and each.runs_on(gpu)]
    same = [build for build in fitting if build.is_meant(framework, version, build.cuda)]
    if same and version:
        return ".".join(map(str, version)), same[-1]
    best = max(fitting, key=lambda build: (parsed(build.last), not build.cuda), default=None)
    return (best.last, best) if best else None


@cache
def _facts() -> dict[str, Any]:
    return tomllib.loads((resources.files(__package__) / "gpus.toml").read_text("utf-8"))


def _gpu(name: str, facts: Mapping[str, Any]) -> Gpu:
    return Gpu(name=name, **{**facts, "memory": size(facts["memory"])})


def _build(facts: Mapping[str, Any]) -> Build:
    return Build(
        framework=facts["framework"],
        since=parsed(facts["since"]),
        until=parsed(facts["until"]) if "until" in facts else None,
        cuda=facts.get("cuda", ""),
        capabilities=tuple(facts["capabilities"]),
        last=facts.get("last", ""),
        python=facts.get("python", ""),
    )
