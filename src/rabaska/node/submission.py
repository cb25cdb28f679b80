"""Submit a job and remember it in the run folder, whatever becomes of the laptop meanwhile.

`submit RUNFOLDER --links N [--resume] [--after JOB] -- COMMAND…` runs the scheduler's own submit
command. With `--after` it is one more link of the chain that JOB belongs to.
The intention is written before it and the answer after it, so that a submission whose
answer was lost can be told from one that never happened.
"""

import argparse
import subprocess
import sys
import time
import uuid
from typing import Dict, List

from . import files
from .runfolder import RunFolder


def main(argv: List[str]) -> int:
    words = argparse.ArgumentParser(prog="submit")
    words.add_argument("run")
    words.add_argument("--links", type=int, default=1)
    words.add_argument("--resume", action="store_true")
    words.add_argument("--after", default="", metavar="JOB")
    words.add_argument("command", nargs="+")
    asked = words.parse_args(argv)
    run = RunFolder(asked.run)

    intention = {
        "submission": uuid.uuid4().hex,
        "time": time.time(),
        "links": asked.links,
        "resume": asked.resume,
        "after_link": run.holder(),
        "after": asked.after,
    }
    files.append_line(run.jobs, intention)
    process = subprocess.Popen(asked.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = (text.decode("utf-8", "replace") for text in process.communicate())
    answer = {
        "submission": intention["submission"],
        "after": asked.after,
        "exit_code": process.returncode,
        "said": output,
        "complained": errors,
    }
    files.append_line(run.jobs, answer)
    sys.stdout.write(output)
    sys.stderr.write(errors)
    return process.returncode


def submissions(run: RunFolder) -> List[files.Json]:
    """Each submission with its answer, oldest first; `said` is missing where none came."""
    found: Dict[str, files.Json] = {}
    for line in files.read_lines(run.jobs):
        found.setdefault(str(line.get("submission")), {}).update(line)
    return list(found.values())
