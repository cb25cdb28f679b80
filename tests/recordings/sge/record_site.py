"""Writes site.txt anew: `python -m tests.recordings.sge.record_site` (as root on Debian)."""

import datetime
import re
import subprocess
from pathlib import Path

from tests.lab.grid_engine import FILES, GridEngine

from rabaska.sites import questions
from rabaska.steps.probe_site import site_questions


def main() -> None:
    with GridEngine() as cluster:
        for program in ("sbatch", "sinfo", "scontrol", "sacctmgr", "sshare"):  # the machine's
            cluster.path(f"/usr/bin/{program}").unlink(missing_ok=True)
        cluster.path("/etc/pip.conf").write_text("")
        cluster.add_queue(_short((FILES / "queue").read_text()))
        cluster.disable("short.q")
        words = ["ssh", "-F", str(cluster.ssh_config), "lab", "bash -l"]
        asked = questions.script(site_questions())
        said = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    head = f"# Son of Grid Engine 8.1.9, recorded {datetime.date.today()}\n"
    Path(__file__).with_name("site.txt").write_text(head + said.stdout)


def _short(queue: str) -> str:
    queue = re.sub(r"(?m)^qname.*$", "qname short.q", queue)
    return re.sub(r"(?m)^h_rt.*$", "h_rt 01:00:00", queue)


if __name__ == "__main__":
    main()
