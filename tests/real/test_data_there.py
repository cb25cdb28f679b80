"""Data that only the Slurm cluster has: the remedy is applied and works; a job packs it there."""

import re

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]

SETTINGS = """
name = "tiny"
command = "python3 train.py {data}"

[resources]
walltime = "2m"

[data.animals]
"""
TRAIN = """
import os, sys
print("read", sorted(os.listdir(sys.argv[1])), "in", sys.argv[1])
"""


def test_a_path_that_only_the_cluster_has_is_used_in_place_and_packed_by_a_job(voyager):
    there = f"{voyager.lab.shared}/animals"
    voyager.lab.path(there).mkdir()
    for name in ("cat.txt", "dog.txt"):
        voyager.lab.path(f"{there}/{name}").write_text(name)
    voyager.write("train.py", TRAIN)
    voyager.write("rabaska.toml", f'{SETTINGS}path = "{there}"\n')

    refused = voyager.types("run", "--on", "lab", code=None).errors
    told = " ".join(voyager.types("doctor", "--on", "lab", code=None).output.split())

    (remedy,) = re.findall(r"it is on lab: write `(at = .*?)` instead of `path`", refused)
    assert remedy in told
    assert "no runs yet" in voyager.types("status", code=9).errors

    voyager.write("rabaska.toml", f"{SETTINGS}{remedy}\n")
    voyager.types("run", "--on", "lab", "--wait")
    assert f"read ['cat.txt', 'dog.txt'] in {there}" in voyager.types("logs").output

    voyager.write("rabaska.toml", f'{SETTINGS}{remedy}\nas = "files"\n')
    packing = voyager.types("data", "pack", "--on", "lab", "--job").output.strip()
    voyager.types("wait", packing)
    said = voyager.types("run", "--on", "lab", "--wait").errors
    assert "2 files, 14 bytes, packed before on lab as animals-" in said
    assert "read ['cat.txt', 'dog.txt'] in " in voyager.types("logs").output
