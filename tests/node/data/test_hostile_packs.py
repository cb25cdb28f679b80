"""Packs made to do harm, staged where a failure of ours could do none: nothing can be written there
but the target itself.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forged import entry, forge

from rabaska.node.data.pack_format import FILE, FOLDER, LINK

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a cage")

# Every mount is made read-only, not the root's alone: the folder of the tests may lie on another.
CAGE = """
    while read -r _ _ _ _ point _; do
        case $point in /proc*|/sys*) ;; *) mount -o remount,bind,ro "$point" || exit ;; esac
    done < /proc/self/mountinfo
    mount -t tmpfs tmpfs "$1" && shift && exec "$@"
"""
DEVICE, PIPE = 3, 4
STAGE = """
import json, os, sys
from rabaska.node.data.pack_format import BadPack
from rabaska.node.data.stage import stage
target, packs = sys.argv[1], sys.argv[2:]
told = {}
for pack in packs:
    for mode in ("files", "shards"):
        try:
            stage(pack, os.path.join(target, mode), mode)
            said = "staged"
        except BadPack as refusal:
            said = str(refusal)
        told[os.path.basename(pack) + " as " + mode] = said
told["left"] = os.listdir(os.path.join(target, "files"))
# Not ru_maxrss, which begins with that of the process we were started by.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
told["megabytes"] = int(peak.split()[1]) / 1000
print(json.dumps(told))
"""
HOSTILE = {
    "absolute": [entry(b"/etc/passwd"), entry(b"/etc", FOLDER)],
    "above": [entry(b"../../escaped"), entry(b"../..", FOLDER), entry(b"..", FOLDER)],
    "within": [entry(b"a/../../escaped"), entry(b"a/../..", FOLDER), entry(b"a", FOLDER)],
    "link out": [entry(b"out", LINK, b"/etc")],
    "link up": [entry(b"a/out", LINK, b"../../x"), entry(b"a", FOLDER)],
    "through a link": [entry(b"a/passwd"), entry(b"a", LINK, b"b"), entry(b"b", FOLDER)],
    "device": [entry(b"null", DEVICE)],
    "pipe": [entry(b"pipe", PIPE)],
    "set-user-id": [entry(b"shell", mode=0o4755)],
    "endless": [entry(b"large", size=2**60)],
    "far away": [entry(b"large", offset=2**63 + 512)],
    "negative": [entry(b"large", size=2**64 - 512)],
    "many twins": [entry(b"a", FILE)] * 1_000_000,
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What became of every hostile pack, all of them in one cage."""
    place = tmp_path_factory.mktemp("hostile")
    packs = [forge(place / name, entries) for name, entries in HOSTILE.items()]
    (place / "target").mkdir()
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", CAGE, "cage"]
    words += [place / "target", sys.executable, "-c", STAGE, place / "target", *packs]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=200)
    if "unshare" in ended.stderr or "mount:" in ended.stderr:
        pytest.skip("this machine does not let us make a cage")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_pack_is_unpacked(told, name):
    assert told[f"{name} as files"] != "staged"


def test_none_of_them_leaves_anything_behind_or_fills_the_memory(told):
    assert told["left"] == []
    assert told["megabytes"] < 300


def test_nothing_can_be_written_outside_the_cage(tmp_path):
    script = f"open({str(tmp_path / 'escaped')!r}, 'w')"
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", CAGE, "cage"]
    (tmp_path / "target").mkdir()

    ended = subprocess.run(
        [*words, tmp_path / "target", sys.executable, "-c", script],
        check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert ended.returncode != 0
    assert not Path(tmp_path / "escaped").exists()
