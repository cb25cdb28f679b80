"""`python -m tests.needs`: installs what the tests need, as root on Debian; elsewhere says so."""

import sys
from collections.abc import Callable

from . import apptainer, packages, processors, pythons, torch_env


def main() -> int:
    if not packages.can_install():
        print("not root on Debian: tests are left out whose programs are not installed")
        return 0
    step("Debian's packages for the tests", packages.install, needed=bool(packages.missing()))
    step("Pythons of other releases of Debian", pythons.install, needed=bool(pythons.absent()))
    step("Pythons for other processors", processors.install, needed=bool(processors.absent()))
    step("Apptainer, and an image", apptainer.install, needed=not apptainer.is_here())
    step("PyTorch for the lab's jobs", torch_env.build, needed=not torch_env.is_complete())
    lacking = packages.missing()
    if lacking:
        print(f"these packages could not be installed: {', '.join(lacking)}", file=sys.stderr)
    return 1 if lacking else 0


def step(what: str, act: Callable[[], object], *, needed: bool) -> None:
    if needed:
        print(f"installing {what} …", flush=True)
        act()


if __name__ == "__main__":
    sys.exit(main())
