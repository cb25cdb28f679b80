"""What runs in an interactive allocation: the environment of a job, then a shell in it."""

import shlex
from collections.abc import Sequence

from rabaska.domain.jobs import InJob
from rabaska.jobscript.script import closed, exports


def enter_script(in_job: InJob, setup: Sequence[str], command: Sequence[str]) -> str:
    lines = ["#!/bin/bash", *closed(in_job)]
    if setup:
        lines += ["", "# The environment", *setup]
    if told := exports(in_job):
        lines += ["", "# What our node side needs to know of this job", *told]
    lines += ["", "# Stage the data, put the code in place, and open a shell there"]
    return "\n".join([*lines, f"exec {shlex.join(command)}"]) + "\n"
