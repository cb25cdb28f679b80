"""What sites print, read into facts; a real Slurm's answers are kept unedited."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.amounts import duration
from rabaska.domain.clusters import Cluster, Partition
from rabaska.scouting import comparing, profile, questions, sites
from rabaska.scouting.questions import Answer
from rabaska.settings.profiles import load_cluster

RECORDED = Path(__file__).parents[1] / "recordings" / "slurm" / "site.txt"


@pytest.fixture
def answers():
    return questions.answers(RECORDED.read_text())


@pytest.fixture
def site(answers):
    return sites.read(answers)


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


def test_a_site_that_answers_nothing_is_a_computer_of_its_own():
    assert sites.read({}) == sites.Site()


def test_a_real_slurms_profile_says_what_was_read(site, tmp_path):
    cluster = Cluster("x", "The lab", "slurm", host="lab", ssh_options=("-F", "a b"))

    read = loaded(tmp_path, profile.text(cluster, site))

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
        (["qsub", "pbsnodes"], "pbs_version = 2022.1.1\nSGE_ROOT=", "pbs"),
        (["qsub", "pbsnodes"], "Version: 6.1.2\nSGE_ROOT=", "torque"),
        ([], "SGE_ROOT=", "local"),
    ],
)
def test_schedulers_are_told_apart(programs, said, scheduler):
    assert sites.scheduler(programs, said) == scheduler


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
    assert sites.gpus_of(gres) == gpus


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
    assert sites.walltime(text) == span


def test_a_partition_of_several_kinds_of_node_is_as_large_as_the_largest():
    text = "gpu*|1:00:00|2|24+|64000+|gpu:k40:2|.\ngpu*|1:00:00|1|48|1000|gpu:v100:4|."

    (partition,) = sites.partitions(text)

    assert partition.nodes == 3
    assert (partition.cores, partition.gpus, partition.gpu_model) == (48, 4, "v100")
    assert partition.memory == 64000 * 2**20


def test_modules_of_lmod_are_names_without_headings_and_marks():
    text = "/cvmfs/x/modules:\npython/\npython/3.10.2\npython/3.11.5(default)\nStdEnv/2023 <L>\n"

    assert sites.modules(text) == ("python/3.10.2", "python/3.11.5", "StdEnv/2023")


def test_the_sites_own_wheelhouse_is_what_its_pip_was_told():
    text = (
        "global.no-index='1'\nwheel.find-links='/cvmfs/a /cvmfs/b'\ninstall.find-links='/cvmfs/a'"
    )

    assert sites.wheelhouse(text) == ("/cvmfs/a", "/cvmfs/b")


line = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)
words = st.sampled_from(["a|1:00:00|2|3|4|gpu:x:5|.", "python3 Python 3.9.1", "SCRATCH=/s", "x/1"])


@given(st.dictionaries(st.sampled_from([*questions.QUESTIONS, "probe"]),
                       st.lists(line | words).map("\n".join)))  # fmt: skip
def test_whatever_a_site_says_its_profile_can_be_loaded(tmp_path_factory, said):
    folder = tmp_path_factory.getbasetemp()
    found = sites.read({name: Answer(0, text) for name, text in said.items()})

    read = loaded(folder, profile.text(Cluster("x", "X", "", host="h"), found))

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
    assert duration(profile.spelled(span)) == span


def verdicts(cluster, site, answers):
    return {each.key: each.verdict for each in comparing.compared(cluster, site, answers)}


def test_a_profile_that_was_just_written_agrees_with_its_site(site, answers, tmp_path):
    cluster = loaded(tmp_path, profile.text(Cluster("x", "X", "slurm", host="lab"), site))
    paths = Answer(0, "storage.store=written\nstorage.tiers.scratch=written")
    answers |= {"python": Answer(0, "Python 3.11.2"), "paths": paths}

    told = verdicts(cluster, site, answers)

    assert {key for key, verdict in told.items() if verdict != "ok"} == {"storage.local"}


@pytest.mark.parametrize(
    ("version", "verdict"), [("slurm 18.08.7", "differs"), ("slurm 20.11.9", "ok")]
)
def test_how_gpus_are_asked_for_is_told_by_the_age_of_slurm(site, answers, version, verdict):
    cluster = Cluster("x", "X", "slurm", host="lab")

    told = comparing.compared(cluster, replace(site, version=version), answers)

    assert [each.verdict for each in told if each.key == "jobs.gpus"] == [verdict]


def test_each_line_that_differs_is_found(site, answers, tmp_path):
    cluster = loaded(tmp_path, profile.text(Cluster("x", "X", "slurm", host="lab"), site))
    first, *rest = cluster.partitions
    wrong = replace(
        cluster,
        scheduler="pbs",
        modules=("python/3.11", "julia"),
        accounts=("def-prof",),
        internet=True,
        partitions=(replace(first, walltime=timedelta(hours=9)), *rest[1:], Partition("gone")),
    )
    answers |= {"python": Answer(127, "no such command"), "paths": Answer(0, "")}

    told = comparing.compared(wrong, site, answers)

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
