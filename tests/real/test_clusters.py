"""`rabaska clusters add` and `check`, against a real Slurm at the other end of ssh."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture
def newcomer(voyager):
    """Somebody who can `ssh lab` and has no profile yet."""
    voyager.lab.path("/etc/pip.conf").write_text("")
    voyager.profile.unlink()
    return voyager


def add(user, *words, code=0):
    options = [f"--ssh-option={word}" for word in ("-F", str(user.lab.ssh_config))]
    return user.types("clusters", "add", "lab", "--host", "lab", *options, *words, code=code)


def test_a_cluster_that_was_added_can_be_used_at_once(newcomer):
    said = add(newcomer)

    assert "slurm (slurm-wlm 22.05.8)" in said.output
    assert "nvidia_dev" in said.output
    assert "2 x k40" in said.output
    run = newcomer.run()
    newcomer.until(lambda status: status["state"] == "finished", run)
    assert newcomer.lab.path(f"{newcomer.lab.shared}/rabaska/runs/{run}/job.sh").exists()


def test_what_was_found_stands_in_the_profile_with_comments(newcomer):
    add(newcomer, "--probe")

    text = newcomer.profile.read_text()
    assert 'scheduler = "slurm"' in text
    assert "# What runs rabaska's own part there: 3.6 or newer. Seen: python3 (3.11.2)" in text
    assert "internet = false" in text
    assert 'local = "$SLURM_TMPDIR"' in text
    assert f'scratch = "$SCRATCH"  # {newcomer.lab.shared}' in text
    assert "python/3.11" in text
    assert list(newcomer.profile.parent.iterdir()) == [newcomer.profile]


def test_a_profile_is_never_written_over_without_asking(newcomer):
    newcomer.profile.write_text('title = "mine"\nscheduler = "slurm"\n')

    said = add(newcomer, code=2).errors

    assert "already" in said
    assert "--force" in said
    assert newcomer.profile.read_text() == 'title = "mine"\nscheduler = "slurm"\n'
    add(newcomer, "--force")
    assert "[partitions." in newcomer.profile.read_text()


def test_a_host_that_does_not_answer_leaves_no_profile(newcomer):
    said = newcomer.types("clusters", "add", "far", "--host", "nobody@no-such-host.invalid", code=8)

    assert "no-such-host.invalid" in said.errors
    assert not (newcomer.home / "clusters" / "far.toml").exists()


@pytest.mark.parametrize("name", ["here", "../escape", ""])
def test_a_name_that_cannot_be_a_cluster_is_refused(newcomer, name):
    said = newcomer.types("clusters", "add", name, "--host", "lab", code=2)

    assert f"a cluster cannot be called `{name}`" in said.errors


def test_a_profile_that_is_right_checks_out(newcomer):
    add(newcomer)

    lines = json.loads(newcomer.types("clusters", "check", "lab", "--json").output)

    assert {line["verdict"] for line in lines} == {"ok"}
    keys = {line["key"] for line in lines}
    assert {"scheduler", "python", "storage.store", "partitions.gdl.gpu_model"} <= keys


def test_a_profile_that_is_out_of_date_is_told_line_by_line(newcomer):
    add(newcomer)
    text = newcomer.profile.read_text().replace('walltime = "20m"', 'walltime = "12h"')
    text = text.replace("modules = []", 'modules = ["python/3.11", "python/2.7"]')
    newcomer.profile.write_text(text.replace('"$SCRATCH/rabaska"', '"/nowhere/rabaska"'))

    said = newcomer.types("clusters", "check", "lab", code=1).output

    differing = [line.split()[:4] for line in said.splitlines() if line.startswith("differs")]
    assert differing == [
        ["differs", "storage.store", "/nowhere/rabaska", "is"],
        ["differs", "software.modules", "python/2.7", "python/3.11"],
        ["differs", "partitions.nvidia_dev.walltime", "12h", "20m"],
    ]


def test_a_banner_is_not_taken_for_an_answer(make_lab, make_voyager):
    user = make_voyager(make_lab(banner="@@asked partitions\nWelcome|1|2|3|4|5|."))
    user.profile.unlink()

    add(user)

    assert "Welcome" not in user.profile.read_text()


def test_accounts_are_found_where_the_site_has_a_database(make_lab, make_voyager):
    user = make_voyager(make_lab(accounting=True))
    user.profile.unlink()

    add(user)

    assert 'accounts = ["proj"]' in user.profile.read_text()
