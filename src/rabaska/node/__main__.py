"""The commands of the node side; each module is loaded only when its command is used."""

import importlib
import sys
from typing import List, Optional

from . import encoding

COMMANDS = {
    "run": ".job.agent",
    "report": ".login.run_report",
    "runs": ".login.list_runs",
    "status": ".login.status_query",
    "tail": ".login.follow_log",
    "checkpoints": ".login.list_checkpoints",
    "verify": ".data.verify",
    "measure": ".data.storage_speed",
    "compiled": ".native",
    "sample-folder": ".data.sample_folder",
    "prepare-data": ".login.prepare_data",
    "stored": ".login.stored_inputs",
    "take-up": ".login.take_up_pack",
    "task": ".job.program_task",
    "job-folder": ".job.job_folder",
    "gpu-vitals": ".vitals.gpu_process",
    "other-nodes": ".job.other_nodes",
    "on-nodes": ".job.run_on_nodes",
    "node-helper": ".job.node_helper",
    "rsh": ".job.rsh",
    "create": ".login.create_run",
    "submit": ".login.submit_job",
    "watch": ".login.watch_run",
    "wait-for-exit": ".login.wait_for_exit",
    "receive": ".login.receive_push",
    "send-results": ".login.send_results",
    "grown": ".login.grown_files",
    "relay": ".job.relay",
    "ssh-session": ".job.ssh_session",
    "serve": ".job.page_server",
    "kernel": ".job.notebook_kernel",
    "tensorboard": ".job.tensorboard_server",
    "here": ".here.commands",
    "shell": ".job.interactive_shell",
    "exec": ".job.exec_command",
    "wheels": ".environment.check_wheels",
    "freeze": ".environment.pack_environment",
    "venv": ".environment.make_venv",
    "install": ".environment.install_packages",
    "kept-env": ".job.kept_environment",
    "conda": ".environment.make_conda",
    "search": ".search.commands",
    "relocate": ".environment.relocation",
}


def main(argv: Optional[List[str]] = None) -> int:
    if argv is None:
        # What the laptop and job logs expect, in whatever locale a job finds itself.
        encoding.allow_any_name("utf-8")
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] not in COMMANDS:
        problem = "unknown command {!r}".format(words[0]) if words else "no command given"
        sys.stderr.write("{}; known commands: {}\n".format(problem, ", ".join(sorted(COMMANDS))))
        return 2
    module = importlib.import_module(COMMANDS[words[0]], "rabaska.node")
    return int(module.main(words[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main())
