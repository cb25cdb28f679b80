"""One shell command on one node of a job: what mpirun starts its helpers by, in place of ssh.

`rsh --reach HOW HOST COMMAND…`
"""

import argparse
import socket
from typing import List

from ..record.events import say
from . import node_list
from .run_on_nodes import CommandOnNodes


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="rsh")
    parser.add_argument("--reach", default="")
    parser.add_argument("host")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    try:
        known = node_list.hosts(options.reach, socket.gethostname())
        host = node_list.host_called(options.host, known)
        shell = ["sh", "-c", " ".join(options.command)]
        return CommandOnNodes([host], options.reach, 1, shell, first_is_here=False).run()
    except (node_list.NotReached, OSError) as problem:
        say(str(problem))
        return 1
