"""What sites print, read into facts; a real Slurm's answers are kept unedited."""

import tomllib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.amounts import duration, write_duration
from rabaska.domain.clusters import Cluster, Partition
from rabaska.settings.profiles import load_cluster
from rabaska.sites import comparison, profile_text, questions, site_facts
from rabaska.sites.questions import SiteAnswer
from rabaska.steps.probe_site import read_site, site_questions

RECORDINGS = Path(__file__).parents[1] / "recordings"
RECORDED = RECORDINGS / "slurm" / "site.txt"


def test_a_queue_that_jobs_do_not_name_is_written_so(tmp_path):
    site = site_facts.Site(partitions=(Partition("all", nodes=2, queue=""),))

    read = loaded(tmp_path, profile_text.text(Cluster("x", "X", ""), site))

    assert read.partitions == site.partitions


@pytest.fixture
def answers():
    return questions.answers(RECORDED.read_text())


@pytest.fixture
def site(answers):
    return read_site(answers)


def loaded(folder, text):
    (folder / "x.toml").write_text(text, "utf-8")
    return load_cluster("x", user_profiles=folder)


def test_a_real_slurm_is_read(site):
    assert site.scheduler == "slurm"
    assert site.version == "slurm-wlm 22.05.8"
    assert site.default_partition == Partition(
        "nvidia_dev", timedelta(minutes=20), 2, 24, 64000 * 10**6, 2, "k40", True, without_gpus=True
    )
    assert site.partitions[6].gpus == 8
    assert site.accounts is None  # no database, so nobody can say
    assert site.limits["MaxArraySize"] == "1001"
    assert site.python == "python3"
    assert "python/3.11" in site.modules
    assert site.variables["SCRATCH"] == "/scratch/proj/alice"
    assert site.in_job["SLURM_TMPDIR"].startswith("/lscratch/")
    assert site.internet is False


def recorded_site(scheduler):
    return read_site(questions.answers((RECORDINGS / scheduler / "site.txt").read_text()))


def test_a_real_torque_is_read():
    site = recorded_site("torque")

    memory = 24684100 * 2**10 // 2**20 * 2**20
    nodes = {"nodes": 2, "cores": 4, "memory": memory, "gpus": 2, "gpu_model": "k80"}
    nodes["without_gpus"] = True
    assert (site.scheduler, site.version) == ("torque", "Version: master")
    assert site.partitions == (
        Partition("batch", timedelta(hours=1), **nodes, default=True),
        Partition("long", timedelta(days=2), **nodes),
        Partition("still", **nodes),
        Partition("shut", **nodes),
    )
    assert [each.closed for each in site.partitions] == [
        "", "", "it starts no jobs: started = False", "it takes no jobs: enabled = False",
    ]  # fmt: skip


def test_a_real_grid_engine_is_read():
    site = recorded_site("sge")

    main, short = site.partitions
    assert (site.scheduler, site.version) == ("sge", "SGE 8.1.9")
    assert (main.name, main.walltime, main.nodes, main.cores, main.gpus) == (
        "main.q",
        None,
        1,
        4,
        2,
    )
    assert (short.name, short.walltime, short.nodes) == ("short.q", timedelta(hours=1), 1)
    assert main.memory > 2**30
    assert (main.closed, short.closed) == ("", "its state is d: disabled")


def test_a_site_that_answers_nothing_is_a_computer_of_its_own():
    assert read_site({}) == site_facts.Site()


def test_a_real_slurms_profile_says_what_was_read(site, tmp_path):
    cluster = Cluster("x", "The lab", "slurm", host="lab", ssh_options=("-F", "a b"))

    read = loaded(tmp_path, profile_text.text(cluster, site))

    assert (read.scheduler, read.host, read.ssh_options) == ("slurm", "lab", ("-F", "a b"))
    assert read.store == "$SCRATCH/rabaska"
    assert read.local_space == "$SLURM_TMPDIR"
    assert read.partitions == site.partitions
    assert read.internet is False


def test_modules_of_lmod_are_names_without_headings_and_marks():
    text = "/cvmfs/x/modules:\npython/\npython/3.10.2\npython/3.11.5(default)\nStdEnv/2023 <L>\n"

    assert site_facts.modules(text) == ("python/3.10.2", "python/3.11.5", "StdEnv/2023")


def test_the_sites_own_wheelhouse_is_what_its_pip_was_told():
    text = (
        "global.no-index='1'\nwheel.find-links='/cvmfs/a /cvmfs/b'\ninstall.find-links='/cvmfs/a'"
    )

    assert site_facts.wheelhouse(text) == ("/cvmfs/a", "/cvmfs/b")


line = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)
words = st.sampled_from(
    ["a|1:00:00|2|3|4|gpu:x:5|down|.", "python3 Python 3.9.1", "SCRATCH=/s", "x/1"]
)


@given(st.dictionaries(st.sampled_from([*site_questions(), "probe"]),
                       st.lists(line | words).map("\n".join)))  # fmt: skip
def test_whatever_a_site_says_its_profile_can_be_loaded(tmp_path_factory, said):
    folder = tmp_path_factory.getbasetemp()
    found = read_site({name: SiteAnswer(0, text) for name, text in said.items()})

    read = loaded(folder, profile_text.text(Cluster("x", "X", "", host="h"), found))

    assert read.scheduler == found.scheduler
    assert read.partitions == found.partitions


@given(
    st.dictionaries(st.from_regex(r"[a-z]+", fullmatch=True), st.tuples(line, st.integers(0, 255)))
)
def test_answers_come_back_under_their_questions(told):
    told = {name: (" ".join(text.split()), code) for name, (text, code) in told.items()}
    output = "a banner\n" + "".join(
        f"\n@@asked {name}\n{text}\n@@exit {code}\n" for name, (text, code) in told.items()
    )

    found = questions.answers(output)

    assert {name: (each.text, each.exit_code) for name, each in found.items()} == told


@given(st.timedeltas(timedelta(seconds=1), timedelta(days=366)).map(
    lambda span: timedelta(seconds=round(span.total_seconds()))))  # fmt: skip
def test_a_limit_is_spelled_as_it_is_read(span):
    assert duration(write_duration(span)) == span


def verdicts(cluster, site, answers):
    return {each.key: each.verdict for each in comparison.compared(cluster, site, answers)}


def test_a_profile_that_was_just_written_agrees_with_its_site(site, answers, tmp_path):
    cluster = loaded(tmp_path, profile_text.text(Cluster("x", "X", "slurm", host="lab"), site))
    paths = SiteAnswer(0, "storage.store=written\nstorage.tiers.scratch=written")
    answers |= {"python": SiteAnswer(0, "Python 3.11.2"), "paths": paths}

    told = verdicts(cluster, site, answers)

    assert {key for key, verdict in told.items() if verdict != "ok"} == {"storage.local"}


def test_each_line_that_differs_is_found(site, answers, tmp_path):
    cluster = loaded(tmp_path, profile_text.text(Cluster("x", "X", "slurm", host="lab"), site))
    first, *rest = cluster.partitions
    wrong = replace(
        cluster,
        scheduler="pbs",
        modules=("python/3.11", "julia"),
        accounts=("def-prof",),
        internet=True,
        partitions=(replace(first, walltime=timedelta(hours=9)), *rest[1:], Partition("gone")),
    )
    answers |= {"python": SiteAnswer(127, "no such command"), "paths": SiteAnswer(0, "")}

    told = comparison.compared(wrong, site, answers)

    differing = {each.key: each.found for each in told if each.verdict == "differs"}
    assert differing == {
        "scheduler": "slurm",
        "python": "no such command",
        "software.modules": "no such module",
        "nodes.internet": "false",
        "partitions.nvidia_dev.walltime": "20m",
        "partitions.gone": "no such partition",
        "partitions.nvidia": "new: it is not in the profile",
    }
    untold = {each.key for each in told if each.verdict == "cannot be told"}
    assert {"accounts", "storage.store"} <= untold


def test_no_line_of_a_site_becomes_a_line_of_its_profile(tmp_path):
    """Options for ssh start programs on this computer."""
    evil = 'x\n[reach]\noptions = ["-oProxyCommand=evil"]'
    site = site_facts.Site(
        "slurm", evil, variables={"SCRATCH": evil}, limits={"KillWait": evil},
        pythons={"python3": evil}, modules=(evil,), wheelhouse=(evil,), accounts=(evil,),
        partitions=(Partition(evil, closed=evil, gpu_model=evil),),
    )  # fmt: skip
    (tmp_path / "campus.toml").write_text(profile_text.text(Cluster("campus", "Campus", ""), site))

    told = tomllib.loads((tmp_path / "campus.toml").read_text())

    assert "reach" not in told
