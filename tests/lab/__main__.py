"""`python -m tests.lab`: boots a lab for people and keeps it until Ctrl-C."""

import argparse
import signal
import sys

from tests.needs.packages import ACCOUNTING, LAB

from .cluster import Lab
from .install import unavailable
from .site import Site, Storage


def main() -> int:
    options = arguments()
    reason = unavailable(LAB | (ACCOUNTING if options.accounting else {}))
    if reason:
        print(reason, file=sys.stderr)
        return 1
    site = Site(
        warp=options.warp,
        accounting=options.accounting,
        local=Storage(size=options.local),
        without=tuple(options.without),
        banner=options.banner,
    )
    # A lab told to stop by `kill` cleans up as it does for Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Lab(site) as lab:
        print(introduction(lab), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("\nending the lab …")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make lab", description=__doc__)
    parser.add_argument("--warp", type=int, default=1, help="how many times too fast limits pass")
    parser.add_argument("--accounting", action="store_true", help="with a database, for sacct")
    parser.add_argument(
        "--local", default="512m", help="size of each node's local disk; PyTorch needs 2G"
    )
    parser.add_argument("--without", action="append", default=[], help="a program to leave out")
    parser.add_argument("--banner", default="", help="what every shell prints")
    return parser.parse_args()


def introduction(lab: Lab) -> str:
    disk = f"a local disk of {lab.site.local.size}" if lab.site.local.size else "a local disk"
    nodes = "\n".join(f"  {node.name}: {node.gpus} x {node.gpu}, {disk}" for node in lab.site.nodes)
    return f"""\
The lab is up ({lab.boot_seconds:.1f} s). It is a Slurm cluster with these nodes:
{nodes}

  ssh -F {lab.ssh_config} lab

logs in as {lab.user}; then `sinfo`, `sbatch`, `module avail` … as on a real one.
To use it with rabaska:

  rabaska clusters add lab --host lab --ssh-option "-F {lab.ssh_config}"

Shared storage: {lab.shared}. Logs of the daemons: {lab.world.base}/log

Ctrl-C ends it and leaves nothing behind."""


if __name__ == "__main__":
    sys.exit(main())
