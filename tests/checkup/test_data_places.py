"""Where data is said to be: the cluster's shell answers, and each remedy holds."""

import os
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rabaska.checkup.check_data_places import QUESTION, checks, question
from rabaska.domain.clusters import Cluster, SiteDataset
from rabaska.domain.jobs import Resources
from rabaska.domain.projects import Dataset, Project

CAMPUS = Cluster("campus", "Campus", "slurm", host="login")


def of(dataset):
    return Project("x", Path("x"), ("x",), Resources(timedelta(hours=1)), datasets=(dataset,))


@pytest.fixture
def asked(tmp_path):
    """What is found wrong with a dataset, by a shell that answers as the cluster's would."""

    def asked(dataset, cluster=CAMPUS):
        project = of(dataset)
        script = question(project, cluster).get(QUESTION, "true")
        environment = {**os.environ, "DATA": str(tmp_path)}
        said = subprocess.run(
            ["bash", "-c", script], stdout=subprocess.PIPE, text=True, env=environment, check=True
        )
        return list(checks(project, cluster, said.stdout))

    return asked


def test_what_is_there_is_not_complained_of(asked, tmp_path):
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats.tar").write_text("x")

    assert asked(Dataset("cats", at="$DATA/cats")) == []
    assert asked(Dataset("cats", at=f"{tmp_path}/cats.tar")) == []


def test_the_remedy_for_a_misspelt_path_is_a_path_that_is_there(asked, tmp_path):
    (tmp_path / "imagenet").mkdir()
    wrong = Dataset("cats", at="$DATA/imagnet")

    (found,) = asked(wrong)

    assert found.id == "data.absent"
    right = found.fix.partition('"')[2].partition('"')[0]
    assert asked(replace(wrong, at=right)) == []


def test_a_path_like_no_other_is_told_with_what_is_near(asked, tmp_path):
    (tmp_path / "mnist").mkdir()

    (found,) = asked(Dataset("cats", at="$DATA/what/ever"))

    assert f"{tmp_path} is there, with mnist" in found.fix


def test_a_path_that_only_the_cluster_has_becomes_at(asked, tmp_path):
    wrong = Dataset("cats", tmp_path / "cats")

    (nowhere,) = asked(wrong)
    (found,) = checks(of(wrong), CAMPUS, f"place\t0\tfolder\t{tmp_path}/cats\n")

    assert "under [cluster.campus.data.cats]" in nowhere.fix
    assert found.fix == f'it is on campus: write `at = "{tmp_path}/cats"` instead of `path`'


def test_a_folder_that_may_not_be_read_is_told():
    wrong = Dataset("cats", at="/project/cats")

    (found,) = checks(of(wrong), CAMPUS, "place\t0\tclosed\t/project/cats\n")

    assert found.id == "data.closed"
    assert "ls -ld /project/cats" in found.fix


@pytest.mark.parametrize("text", ["", "place\t7\tfolder\t/x\n", "place\tx\n", "place\t0\tfile\tx"])
def test_an_answer_that_makes_no_sense_accuses_nobody(text):
    assert list(checks(of(Dataset("cats", at="/project/cats")), CAMPUS, text)) == []


def test_datasets_of_the_site_are_known_by_name(asked, tmp_path):
    (tmp_path / "imagenet").mkdir()
    cluster = replace(CAMPUS, datasets=(SiteDataset("imagenet", "$DATA/imagenet"),))

    assert asked(Dataset("cats", at="site:ImageNet"), cluster) == []
    (found,) = asked(Dataset("cats", at="site:imagnet"), cluster)
    assert found.fix == 'did you mean `at = "site:imagenet"`?'
    (unlisted,) = asked(Dataset("cats", at="site:imagenet"))
    assert "lists: none" in unlisted.why


def test_what_only_nodes_have_is_not_asked_after(asked):
    cluster = replace(CAMPUS, datasets=(SiteDataset("x", "/tmp/none", nodes_only=True),))

    assert asked(Dataset("cats", at="node:/tmp/none")) == []
    assert asked(Dataset("cats", at="site:x"), cluster) == []


def test_names_with_quotes_and_commands_in_them_are_only_names(asked, tmp_path):
    path = f"{tmp_path}/it's $(touch {tmp_path}/evil) `x`"
    Path(path).mkdir(parents=True)

    assert asked(Dataset("cats", at=path)) == []
    assert not (tmp_path / "evil").exists()
