"""Answers the login node's port: one `sshd -i` for each connection.

The listening socket was made outside and handed in, so it is reached at 127.0.0.1 of the
machine, while sshd and all it starts live in the login node's own network.
"""

import socket
import subprocess
import sys


def main(listener: socket.socket) -> None:
    visitors: list[subprocess.Popen[bytes]] = []
    while True:
        connection, _ = listener.accept()
        visitors = [visitor for visitor in visitors if visitor.poll() is None]
        command = ["/usr/sbin/sshd", "-i", "-e", "-f", "/etc/ssh/lab_sshd_config"]
        line = connection.fileno()
        visitors.append(subprocess.Popen(command, stdin=line, stdout=line))
        connection.close()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
