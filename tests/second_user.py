"""Another user of the same machine, who tries every door."""

import json

# Runs as that user. Reads a JSON list of paths, and prints what could be done with each.
PRY = r"""
import json, os, sys

def attempts(path):
    yield "list", lambda: os.listdir(path)
    yield "read", lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
    yield "write", lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
    yield "add to", lambda: os.mkdir(os.path.join(path, "planted"))
    yield "replace", lambda: os.rename(path, path + ".moved")

done = []
for path in json.load(sys.stdin):
    for what, act in attempts(path):
        try:
            act()
        except OSError:
            continue
        done.append([what, path])
print(json.dumps(done))
"""

# Words of everybody's processes, and their environment where that can be read.
SPY = r"""
import glob
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    try:
        with open(path, "rb") as stream:
            print(path, stream.read())
    except OSError:
        continue
"""

# Folders that somebody would use who trusts their names: a prepared environment, links, a fifo.
PREPARE = r"""
import os, sys

user, number = sys.argv[1:3]
trap = "touch /tmp/pwned-$(id -u)\n"
for base in ("/tmp", "/dev/shm"):
    for name in ("env", user, "rabaska", "rabaska-" + number, "rabaska"):
        path = os.path.join(base, name)
        os.makedirs(os.path.join(path, "env", "bin"), exist_ok=True)
        for script in (path + "/env/bin/activate", path + "/env/bin/python", path + "/activate"):
            with open(script, "w") as stream:
                stream.write("#!/bin/bash\n" + trap)
            os.chmod(script, 0o777)
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o777)
os.symlink("/tmp/env", "/tmp/rabaska-" + number + ".link")
os.mkfifo("/tmp/rabaska-fifo")
os.chmod("/tmp/rabaska-fifo", 0o666)
"""


def pried(run, paths):
    """What the other user could do with each of `paths`; `run(words, stdin)` runs as that user."""
    said = run(["/usr/bin/python3", "-c", PRY], json.dumps(list(paths)))
    return [f"{what} {path}" for what, path in json.loads(said)]
