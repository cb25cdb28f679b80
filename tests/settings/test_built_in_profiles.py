"""The built-in profiles as a whole: what each must tell, and what they must not contradict."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rabaska.domain.job_request import with_site_defaults
from rabaska.domain.jobs import Resources
from rabaska.domain.projects import Project
from rabaska.knowledge.gpu_facts import gpus
from rabaska.settings.profile_files import names
from rabaska.settings.profile_tables import Profile
from rabaska.settings.profiles import load_cluster

CLUSTERS = {name: load_cluster(name) for name in names() if name != "here"}
WANTED = """
    fir nibi rorqual narval trillium-gpu trillium tamia killarney vulcan beluga cedar graham niagara
    magic-castle phoenix helios hades monk copper mosaic minsky sdumont sdumont2nd mila jean-zay
    perlmutter lumi frontier clariden sherlock
"""

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "adding-a-cluster.md"


def of_the_guide():
    """The profile that people are told to begin with."""
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    with TemporaryDirectory() as folder:
        Path(folder, "example.toml").write_text(text, "utf-8")
        return load_cluster("example", user_profiles=Path(folder))


every_profile = pytest.mark.parametrize(
    "cluster", [*CLUSTERS.values(), of_the_guide()], ids=[*CLUSTERS, "that of the guide"]
)


def project(*, gpus=1, model="", **said):
    asked = Resources(walltime=date.resolution, gpus=gpus, gpu_model=model)
    return Project(name="p", folder=Path(), command=("python",), resources=asked, **said)


def test_every_system_of_the_tutorials_and_its_successors_has_a_profile():
    assert set(WANTED.split()) - set(CLUSTERS) == set()


@every_profile
def test_a_profile_says_where_its_facts_are_from_and_when_they_were_found(cluster):
    assert len(cluster.source) > 10
    assert date.fromisoformat(cluster.checked)


@every_profile
def test_what_is_gone_names_a_successor_that_is_not(cluster):
    if cluster.status == "retired":
        assert cluster.successors
    for successor in cluster.successors:
        assert CLUSTERS[successor].status in ("live", "course")


@every_profile
def test_what_is_gone_says_so_in_one_sentence(cluster):
    if cluster.status == "live":
        assert cluster.retirement == ""
    elif cluster.successors:
        assert cluster.successors[0] in cluster.retirement


@every_profile
def test_there_is_a_place_to_store_and_a_place_on_the_node(cluster):
    node = [tier for tier in cluster.storage if tier.scope == "node"]

    assert cluster.host, "`host` under [reach]"
    assert cluster.store, "`store` under [storage]"
    assert node, 'a [storage.tiers.NAME] with scope = "node": the disk of a node, or its /dev/shm'


@every_profile
def test_no_more_than_one_queue_is_the_usual_one(cluster):
    usual = [each.name for each in cluster.partitions if each.default]

    assert len(usual) == 1, "give one [partitions.NAME] `default = true`"


@every_profile
def test_what_goes_with_a_gpu_fits_on_its_node(cluster):
    for each in cluster.partitions:
        if each.cores:
            assert each.cores_per_gpu * each.gpus <= each.cores, each.name
        if each.memory:
            assert each.memory_per_gpu * each.gpus <= each.memory, each.name
        assert all(count <= each.gpus for count in each.gpu_counts), each.name


@every_profile
def test_every_gpu_is_a_known_one(cluster):
    kinds = {each.kind for each in cluster.partitions if each.kind}

    assert kinds - gpus().keys() == set(), "a line in gpus.toml, or `gpu` with its common name"


@every_profile
def test_what_nobody_verified_is_a_key_of_profiles(cluster):
    for key in cluster.probe:
        assert key.split(".")[0] in Profile.model_fields, key


@every_profile
def test_accounts_can_be_recognised(cluster):
    assert not cluster.account_form or not re.match(cluster.account_form, "")


def test_the_model_is_named_where_the_site_wants_to_hear_it():
    assert with_site_defaults(project(), CLUSTERS["fir"]).resources.gpu_model == "h100"
    assert with_site_defaults(project(), CLUSTERS["narval"]).resources.gpu_model == "a100"
    assert with_site_defaults(project(), CLUSTERS["beluga"]).resources.gpu_model == ""
    assert with_site_defaults(project(gpus=0), CLUSTERS["fir"]).resources.gpu_model == ""


def test_a_model_that_features_tell_is_asked_for_by_its_feature():
    asked = with_site_defaults(project(model="k20"), CLUSTERS["helios"])

    assert asked.features == ("k20",)
    assert asked.resources.gpu_model == ""


def test_a_queue_brings_the_options_that_its_jobs_need():
    asked = with_site_defaults(
        project(queue="qos_gpu_a100-t3", native=("--x",)), CLUSTERS["jean-zay"]
    )

    assert asked.queue == ""
    assert asked.native == ("--qos=qos_gpu_a100-t3", "--hint=nomultithread", "--x")
    assert asked.features == ("a100",)


def test_what_a_project_says_itself_stays():
    asked = project(queue="gdl", features=("nvlink",), model="")
    unknown = project(queue="new_queue")

    assert with_site_defaults(asked, CLUSTERS["sdumont"]).features == ("nvlink",)
    assert with_site_defaults(asked, CLUSTERS["sdumont"]).queue == "gdl"
    assert with_site_defaults(unknown, CLUSTERS["sdumont"]) == unknown


def test_a_gpu_that_several_queues_have_names_none_of_them():
    asked = project(model="v100")

    assert with_site_defaults(asked, CLUSTERS["sdumont"]) == asked


def test_a_job_without_gpus_is_not_sent_to_the_usual_queue_of_gpus():
    assert with_site_defaults(project(gpus=0), CLUSTERS["sherlock"]).queue == ""


def test_a_course_that_is_over_points_to_the_pattern_for_another():
    assert "magic-castle" in CLUSTERS["phoenix"].retirement
    assert replace(CLUSTERS["phoenix"], successors=()).retirement.endswith("its course")
