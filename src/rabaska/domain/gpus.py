"""GPUs, and which builds of a framework hold code for them."""

import re
from dataclasses import dataclass

Version = tuple[int, ...]


@dataclass(frozen=True)
class Gpu:
    """A model of GPU; `capability` is empty for those that do not run CUDA."""

    name: str
    capability: str = ""  # "7.0"
    memory: int = 0  # bytes of the smallest variant
    bf16: bool = False  # computes in bfloat16 by itself
    backend: str = "cuda"  # or rocm
    processor: str = "x86_64"  # of the nodes it sits in
    units: float = 0.0  # what the Alliance bills for an hour, in its reference units


@dataclass(frozen=True)
class Build:
    """Some versions of a framework, built for some GPUs."""

    framework: str
    since: Version  # the first version
    until: Version | None  # the first version that is no longer meant; None: all later ones
    cuda: str  # "cu126"; "" for the build that `pip install` gives
    capabilities: tuple[str, ...]  # "7.0+PTX" holds for what came later too
    last: str = ""  # the last release of these
    python: str = ""  # the newest Python that there are wheels for; "": a recent one

    def is_meant(self, framework: str, version: Version, cuda: str) -> bool:
        fits = self.since <= version and (self.until is None or version < self.until)
        return self.framework == framework and fits and self.cuda == cuda

    def runs_on(self, gpu: Gpu) -> bool:
        """The same major capability and no higher minor one, or PTX of a lower one."""
        card = parsed(gpu.capability)
        for capability in self.capabilities:
            compiled = parsed(capability.removesuffix("+PTX"))
            if compiled[0] == card[0] and compiled <= card:
                return True
            if capability.endswith("+PTX") and compiled <= card:
                return True
        return False


def parsed(version: str) -> Version:
    """`2.5.1+cu121` as (2, 5, 1); what follows the numbers is left out."""
    digits = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in digits[0].split(".")) if digits else ()
