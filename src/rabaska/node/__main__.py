"""The words the node side understands; each is loaded only when it is asked for."""

import importlib
import sys
from typing import List, Optional

from . import printing

WORDS = {
    "run": ".job.agent",
    "report": ".login.report",
    "runs": ".login.listing",
    "survey": ".login.survey",
    "tail": ".login.tail",
    "verify": ".data.verify",
    "measure": ".data.measure",
    "task": ".job.task",
    "space": ".job.space",
    "everywhere": ".job.everywhere",
    "spread": ".job.spread",
    "companion": ".job.companion",
    "rsh": ".job.rsh",
    "create": ".login.creation",
    "submit": ".login.submission",
    "leave": ".login.leave",
    "receive": ".login.receive",
    "offer": ".login.offer",
    "here": ".here.commands",
    "inside": ".job.inside",
    "beside": ".job.beside",
    "wheels": ".environment.wheels",
    "freeze": ".environment.frozen",
    "venv": ".environment.venv",
}


def main(argv: Optional[List[str]] = None) -> int:
    if argv is None:
        # What the laptop and job logs expect, in whatever locale a job finds itself.
        printing.can_say_every_name("utf-8")
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] not in WORDS:
        said = "unknown word {!r}".format(words[0]) if words else "no word given"
        sys.stderr.write("{}; known are: {}\n".format(said, ", ".join(sorted(WORDS))))
        return 2
    module = importlib.import_module(WORDS[words[0]], "rabaska.node")
    return int(module.main(words[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main())
