"""The words the node side understands; each is loaded only when it is asked for."""

import importlib
import sys
from typing import List, Optional

from . import encoding

WORDS = {
    "run": ".job.agent",
    "report": ".login.run_report",
    "runs": ".login.list_runs",
    "survey": ".login.status_query",
    "tail": ".login.follow_log",
    "verify": ".data.verify",
    "measure": ".data.storage_speed",
    "task": ".job.program_task",
    "space": ".job.job_folder",
    "everywhere": ".job.other_nodes",
    "spread": ".job.run_on_nodes",
    "companion": ".job.node_helper",
    "rsh": ".job.rsh",
    "create": ".login.create_run",
    "submit": ".login.submit_job",
    "leave": ".login.wait_for_exit",
    "receive": ".login.receive_push",
    "offer": ".login.send_results",
    "here": ".here.commands",
    "inside": ".job.interactive_shell",
    "beside": ".job.exec_command",
    "wheels": ".environment.check_wheels",
    "freeze": ".environment.pack_environment",
    "venv": ".environment.make_venv",
}


def main(argv: Optional[List[str]] = None) -> int:
    if argv is None:
        # What the laptop and job logs expect, in whatever locale a job finds itself.
        encoding.can_say_every_name("utf-8")
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] not in WORDS:
        said = "unknown word {!r}".format(words[0]) if words else "no word given"
        sys.stderr.write("{}; known are: {}\n".format(said, ", ".join(sorted(WORDS))))
        return 2
    module = importlib.import_module(WORDS[words[0]], "rabaska.node")
    return int(module.main(words[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main())
