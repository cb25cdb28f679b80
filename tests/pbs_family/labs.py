"""The batch systems that can be booted, by the name that the Makefile gives.

`python -m tests.pbs_family.labs torque` says in one line that there is none, if there is none.
"""

import sys

from tests.lab import pbs, torque
from tests.lab.batch import NotInstalled
from tests.lab.pbs import Pbs
from tests.lab.torque import Torque

LABS = {"pbs": Pbs, "torque": Torque}
INSTALLED = {"pbs": pbs.installed, "torque": torque.programs}

if __name__ == "__main__":
    try:
        INSTALLED[sys.argv[1]]()
    except NotInstalled as problem:
        sys.exit(str(problem))
