"""Mistakes of a first hour on a real Slurm: each is refused, and its remedy works as it stands."""

import re

import pytest
from tests.checkup.remedies import apply

pytestmark = [pytest.mark.real, pytest.mark.slow]

SETTINGS = """
name = "tiny"
command = "python3 -c pass"

[resources]
walltime = "2m"

[chain]
jobs = 1
"""


def hint(said):
    return said.errors.partition("hint: ")[2].partition(", or ")[0]


def test_the_account_that_a_refusal_names_is_one_that_is_accepted(make_lab, make_voyager):
    lab = make_lab(accounting=True)
    voyager = make_voyager(lab)
    manage = ["sacctmgr", "--immediate"]
    lab.world.run([*manage, "add", "account", "guests"])
    lab.world.run([*manage, "add", "user", lab.user, "account=guests"])
    lab.world.run([*manage, "modify", "user", lab.user, "set", "defaultaccount=guests"])
    lab.world.run(["scontrol", "update", "partitionname=nvidia_dev", "allowaccounts=proj"])
    voyager.write("rabaska.toml", SETTINGS)

    wrong = voyager.types("run", "--on", "lab", "--account", "theirs", code=7)
    none = voyager.types("run", "--on", "lab", code=7)
    apply(hint(none), voyager.project)
    voyager.types("run", "--on", "lab", "--wait")
    lab.world.run([*manage, "remove", "user", lab.user])
    nobody = voyager.types("run", "--on", "lab", code=7)

    assert "you have no account `theirs` on lab" in wrong.errors
    assert "write `--account proj`;" in hint(wrong)
    assert "it names no account, and the one it would be charged to is not accepted" in none.errors
    assert 'write `account = "proj"` under [cluster.lab];' in hint(none)
    assert "Invalid account" in none.errors
    assert "you have no account on lab" in nobody.errors
    assert "add you to an account" in nobody.errors


@pytest.mark.parametrize(
    ("typed", "queue"),
    [
        (["--walltime", "40d"], "nvidia_long"),
        (["--gpus", "9"], "gdl"),
        (["--memory", "500GB"], "gdl"),
    ],
)
def test_a_request_that_no_queue_grants_comes_with_one_that_is_granted(voyager, typed, queue):
    voyager.write("rabaska.toml", SETTINGS)
    refused = hint(voyager.types("run", "--on", "lab", *typed, code=7))

    apply(refused, voyager.project)
    options = dict([typed, *re.findall(r"`(--\w+) (\S+)`", refused)])
    voyager.run(*[word for option in options.items() for word in option])

    assert options != dict([typed])
    assert f'`queue = "{queue}"` under [cluster.lab]' in refused
