"""What sites print, read into facts; a real Slurm's answers are kept unedited."""

import tomllib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.amounts import duration
from rabaska.domain.clusters import Cluster, Partition
from rabaska.settings.profiles import load_cluster
from rabaska.sites import comparison, pbs_queues, profile_text, questions, site_facts, slurm_queues
from rabaska.sites.questions import SiteAnswer

RECORDINGS = Path(__file__).parents[1] / "recordings"
RECORDED = RECORDINGS / "slurm" / "site.txt"


@pytest.fixture
def answers():
    return questions.answers(RECORDED.read_text())


@pytest.fixture
def site(answers):
    return site_facts.read(answers)


def loaded(folder, text):
    (folder / "x.toml").write_text(text, "utf-8")
    return load_cluster("x", user_profiles=folder)


def test_a_real_slurm_is_read(site):
    assert site.scheduler == "slurm"
    assert site.version == "slurm-wlm 22.05.8"
    assert site.default_partition == Partition(
        "nvidia_dev", timedelta(minutes=20), 2, 24, 64000 * 2**20, 2, "k40", default=True
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
    return site_facts.read(questions.answers((RECORDINGS / scheduler / "site.txt").read_text()))


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


# As OpenPBS spells it: a queue with nodes of its own, one for others, one that leads to both.
PBS_QUEUES = """\
@user alice
@groups alice proj
Queue: gpu
    queue_type = Execution
    resources_max.ngpus = 1
    resources_max.nodect = 4
    resources_min.walltime = 00:10:00
    acl_group_enable = True
    acl_groups = proj,other
    enabled = True
    started = True

Queue: private
    queue_type = Execution
    acl_user_enable = True
    acl_users = bob@*
    enabled = True
    started = True

Queue: entry
    queue_type = Route
    route_destinations = gpu,
\tinner
    enabled = True
    started = True

Queue: inner
    queue_type = Execution
    from_route_only = True
    resources_max.walltime = 120:00:00
    enabled = True
    started = True
"""
PBS_NODES = """\
gpu1
     Mom = gpu1
     state = free
     queue = gpu
     resources_available.mem = 1048576kb
     resources_available.ncpus = 8
     resources_available.ngpus = 4
     resources_available.gpu_model = a100

thin1
     Mom = thin1
     state = down
     resources_available.mem = 524288kb
     resources_available.ncpus = 16
"""


def test_queues_of_pbs_have_their_own_nodes_limits_and_users():
    server = "Server: control\n    default_queue = entry\n"

    gpu, private, entry = pbs_queues.partitions(PBS_QUEUES, PBS_NODES, server)

    assert gpu == Partition(
        "gpu", nodes=1, cores=8, memory=2**30, gpus=1, gpu_model="a100", most_nodes=4,
        shortest=timedelta(minutes=10), without_gpus=True,
    )  # fmt: skip
    assert (private.nodes, private.cores, private.on_request) == (1, 16, True)
    assert (entry.default, entry.gpus, entry.walltime) == (True, 1, None)


@pytest.mark.parametrize(
    ("needed", "cores"), [("", 8), ("big", 8), ("thin1+thin2", 4), ("big:k80", 8), ("none", 0)]
)
def test_queues_of_torque_have_the_nodes_that_they_need(needed, cores):
    nodes = (
        "fat1\n     np = 8\n     properties = big,k80\n\n"
        "thin1\n     np = 4\n\nthin2\n     np = 4\n\n"
    )
    queue = f"Queue: q\n    resources_default.neednodes = {needed}\n    enabled = True\n"

    (found,) = pbs_queues.partitions(queue, nodes)

    assert found.cores == cores


def test_a_site_that_answers_nothing_is_a_computer_of_its_own():
    assert site_facts.read({}) == site_facts.Site()


def test_a_real_slurms_profile_says_what_was_read(site, tmp_path):
    cluster = Cluster("x", "The lab", "slurm", host="lab", ssh_options=("-F", "a b"))

    read = loaded(tmp_path, profile_text.text(cluster, site))

    assert (read.scheduler, read.host, read.ssh_options) == ("slurm", "lab", ("-F", "a b"))
    assert read.store == "$SCRATCH/rabaska"
    assert read.local_space == "$SLURM_TMPDIR"
    assert read.partitions == site.partitions
    assert read.internet is False


@pytest.mark.parametrize(
    ("programs", "said", "scheduler"),
    [
        (["sbatch", "qsub"], "slurm 23.02.6", "slurm"),
        (["qsub", "sqsub"], "", "sqsub"),
        (["qsub", "qconf"], "", "sge"),
        (["qsub"], "SGE_ROOT=/opt/sge", "sge"),
        (["qsub", "msub", "pbsnodes"], "Version: 6.1.2\nSGE_ROOT=", "moab"),
        (["qsub", "pbsnodes"], "pbs_version = 2022.1.1\nSGE_ROOT=", "pbs"),
        (["qsub", "pbsnodes"], "Version: 6.1.2\nSGE_ROOT=", "torque"),
        ([], "SGE_ROOT=", "local"),
    ],
)
def test_schedulers_are_told_apart(programs, said, scheduler):
    assert site_facts.scheduler(programs, said) == scheduler


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:v100:4(S:0-1)", (4, "v100")),
        ("gpu:4", (4, "")),
        ("gpu:a100_1g.5gb:7,gpu:a100:3", (7, "a100_1g.5gb")),
        ("craynetwork:4,gpu:h100:4", (4, "h100")),
        ("(null)", (0, "")),
    ],
)
def test_gpus_are_counted_by_model(gres, gpus):
    assert slurm_queues.gpus_of(gres) == gpus


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("20:00", timedelta(minutes=20)),
        ("1:00:00", timedelta(hours=1)),
        ("7-00:00:00", timedelta(days=7)),
        ("infinite", None),
        ("n/a", None),
        ("1000-00:00:00", None),
    ],
)
def test_time_limits_are_read(text, span):
    assert slurm_queues.walltime(text) == span


def test_a_partition_of_several_kinds_of_node_is_as_large_as_the_largest():
    text = "gpu*|1:00:00|2|24+|64000+|gpu:k40:2|up|.\ngpu*|1:00:00|1|48|1000|gpu:v100:4|up|."

    (partition,) = slurm_queues.partitions(text)

    assert partition.nodes == 3
    assert (partition.cores, partition.gpus, partition.gpu_model) == (48, 4, "v100")
    assert partition.memory == 64000 * 2**20


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


@given(st.dictionaries(st.sampled_from([*questions.QUESTIONS, "probe"]),
                       st.lists(line | words).map("\n".join)))  # fmt: skip
def test_whatever_a_site_says_its_profile_can_be_loaded(tmp_path_factory, said):
    folder = tmp_path_factory.getbasetemp()
    found = site_facts.read({name: SiteAnswer(0, text) for name, text in said.items()})

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
    assert duration(profile_text.spelled(span)) == span


def verdicts(cluster, site, answers):
    return {each.key: each.verdict for each in comparison.compared(cluster, site, answers)}


def test_a_profile_that_was_just_written_agrees_with_its_site(site, answers, tmp_path):
    cluster = loaded(tmp_path, profile_text.text(Cluster("x", "X", "slurm", host="lab"), site))
    paths = SiteAnswer(0, "storage.store=written\nstorage.tiers.scratch=written")
    answers |= {"python": SiteAnswer(0, "Python 3.11.2"), "paths": paths}

    told = verdicts(cluster, site, answers)

    assert {key for key, verdict in told.items() if verdict != "ok"} == {"storage.local"}


@pytest.mark.parametrize(
    ("version", "verdict"), [("slurm 18.08.7", "differs"), ("slurm 20.11.9", "ok")]
)
def test_how_gpus_are_asked_for_is_told_by_the_age_of_slurm(site, answers, version, verdict):
    cluster = Cluster("x", "X", "slurm", host="lab")

    told = comparison.compared(cluster, replace(site, version=version), answers)

    assert [each.verdict for each in told if each.key == "jobs.gpus"] == [verdict]


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
