"""rabaska.toml becomes a project, resolved for one cluster."""

import os
from dataclasses import replace
from datetime import timedelta

import pytest

from rabaska.domain.jobs import Resources
from rabaska.domain.projects import CHECKPOINT_PATTERNS, Chain, Dataset, EnvironmentRecipe
from rabaska.errors import SettingsError
from rabaska.packing.code_files import code_names, not_code
from rabaska.settings.project_file import check_command, check_data, find, load
from rabaska.settings.resolution import name_for


def test_every_key_of_the_file_reaches_the_project(write, whole):
    folder = write(whole)

    project = load(folder)

    assert project.name == "digits"
    assert project.folder == folder
    assert project.command[:4] == ("python", "train.py", "--data", "{data}")
    assert project.resume == ("--resume",)
    digits = Dataset("digits", folder / "data/digits", "files", largest_side=512)
    assert project.datasets == (digits,)
    assert project.environment == EnvironmentRecipe(
        kind="virtualenv",
        requirements="numpy\n",
        listed_in="requirements.txt",
        modules=("python/3.11",),
        build="once",
        variables={"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"},
        secrets=("HF_TOKEN",),
        secrets_from=folder / ".env",
    )
    assert project.resources == Resources(
        timedelta(hours=3), gpus=1, gpu_model="v100", tasks=4, cores=4, memory=16 * 10**9,
        exclusive=True,
    )  # fmt: skip
    assert project.launch == "srun"
    assert project.chain == Chain(4, timedelta(seconds=60), requeue=False, at_most=12)
    assert project.checkpoints.patterns == ("*.pt",)
    assert project.keep == ("runs", "lightning_logs")
    assert project.exclude == ("notebooks",)
    assert project.include == ("keys.pem",)
    assert project.progress == r"step (?P<step>\d+)"
    assert project.watch is False
    assert project.account == ""


def test_what_is_said_of_a_cluster_holds_there_only(write, whole):
    folder = write(whole)

    project = load(folder, cluster="beluga")

    assert project.account == "def-prof"
    assert project.queue == "gpu"
    assert project.features == ("nvme",)
    assert project.mail == "ana@example.org"
    assert project.native == ("--exclusive",)
    assert project.resources.walltime == timedelta(hours=12)
    assert project.resources.gpus == 1
    assert project.chain == Chain(2, timedelta(seconds=60), requeue=False, at_most=12)
    assert project.environment.kind == "current"
    assert project.environment.modules == ("python/3.11",)


def test_a_command_is_enough(write):
    folder = write('command = ["python", "my script.py"]')

    project = load(folder)

    assert project.command == ("python", "my script.py")
    assert project.resources == Resources(timedelta(hours=3))
    assert project.checkpoints.patterns == CHECKPOINT_PATTERNS
    assert project.environment == EnvironmentRecipe()


@pytest.mark.parametrize(
    ("lines", "tasks"),
    [
        ("[resources]\ngpus = 4", 1),  # written for one GPU, and not started four times
        ("launch = 'torchrun'\n[resources]\ngpus = 4", 4),
        ("launch = 'srun'\n[resources]\nnodes = 2", 1),
        ("launch = 'mpi'\n[resources]\ngpus = 4\ntasks = 8", 8),
    ],
)
def test_a_launched_program_gets_a_process_for_each_gpu(write, lines, tasks):
    folder = write(f"command = 'python train.py'\n{lines}\n")

    assert load(folder).resources.tasks == tasks


def test_the_file_is_found_from_a_folder_below(write, whole):
    folder = write(whole)
    below = folder / "src" / "models"
    below.mkdir(parents=True)

    project = load(below)

    assert project.folder == folder


def test_without_a_file_init_is_recommended(tmp_path):
    with pytest.raises(SettingsError) as refused:
        find(tmp_path)

    assert "rabaska init" in refused.value.hint


def test_the_command_line_wins_over_the_file_and_over_the_clusters_table(write, whole):
    folder = write(whole)

    project = load(
        folder,
        cluster="beluga",
        overrides={
            "resources.walltime": "30m",
            "chain.jobs": 7,
            "account": "rrg-x",
            "queue": None,
        },
    )

    assert project.resources.walltime == timedelta(minutes=30)
    assert project.chain.jobs == 7
    assert project.account == "rrg-x"
    assert project.queue == "gpu"


def test_a_mistake_on_the_command_line_is_not_blamed_on_the_file(write, whole):
    folder = write(whole)

    with pytest.raises(SettingsError) as refused:
        load(folder, overrides={"resources.walltime": "soon"})

    assert "on the command line" in str(refused.value)
    assert "line 1" not in str(refused.value)


def test_an_unknown_override_offers_the_nearest(write, whole):
    folder = write(whole)

    with pytest.raises(SettingsError) as refused:
        load(folder, overrides={"resources.waltime": "1h"})

    assert refused.value.hint == "did you mean `resources.walltime`?"


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("", "current"),
        ("[environment]\npath = '/opt/env'", "activate"),
        ("[environment]\nrequirements = 'requirements.txt'", "virtualenv"),
        ("[environment]\nkind = 'virtualenv'", "virtualenv"),
    ],
)
def test_the_kind_of_environment_is_guessed_from_what_is_given(write, table, kind):
    folder = write(f"command = 'python t.py'\n{table}\n")

    assert load(folder).environment.kind == kind


def test_a_byte_order_mark_is_read_over(write, whole):
    folder = write(b"\xef\xbb\xbf" + whole.encode())

    assert load(folder).name == "digits"


def test_windows_line_ends_are_read_and_counted(write):
    folder = write("command = 'x'\r\n\r\n[chain]\r\nlinsk = 2\r\n")

    with pytest.raises(SettingsError, match="line 4"):
        load(folder)


@pytest.mark.parametrize(
    ("folder_name", "name"),
    [
        ("digits", "digits"),
        ("Réseau été", "Reseau-ete"),
        ("日本", "project"),
        (".hidden", "hidden"),
    ],
)
def test_a_project_without_a_name_has_its_folders(tmp_path, folder_name, name):
    assert name_for(tmp_path / folder_name) == name


def test_data_is_looked_for_only_when_asked(write, whole):
    folder = write(whole)
    (folder / "data" / "digits").rmdir()
    (folder / "data" / "digits2").mkdir()

    project = load(folder)

    with pytest.raises(SettingsError) as refused:
        check_data(project)
    assert str(refused.value) == (
        f"no folder {folder}/data/digits for dataset `digits` in rabaska.toml, line 8; "
        "did you mean `digits2`?"
    )


def test_a_dataset_may_be_a_file(write, whole):
    folder = write(whole.replace("data/digits", "requirements.txt"))

    check_data(load(folder))


def test_a_dataset_that_is_a_pipe_is_refused(write, whole):
    folder = write(whole.replace("data/digits", "pipe"))
    os.mkfifo(folder / "pipe")

    with pytest.raises(SettingsError, match="is not a readable folder or file"):
        check_data(load(folder))


@pytest.mark.parametrize("path", ["n" * 300, "~nobody-by-that-name/x", "requirements.txt/x"])
def test_a_dataset_that_cannot_be_there_is_refused(write, whole, path):
    folder = write(whole.replace("data/digits", path))

    with pytest.raises(SettingsError, match=r"no folder .* line 8"):
        check_data(load(folder))


def test_data_that_is_there_is_accepted(write, whole):
    check_data(load(write(whole)))


def test_words_added_on_the_command_line_are_checked_too(write, whole):
    project = load(write(whole))
    longer = replace(project, command=(*project.command, "--log={outptu}"))

    check_command(project)
    with pytest.raises(SettingsError, match=r"did you mean `\{output\}`"):
        check_command(longer)


@pytest.mark.parametrize(
    ("said", "jobs", "at_most"),
    [("", 1, None), ("jobs = 3", 3, 3), ("at_most = 9", 1, 9), ("jobs = 5\nat_most = 2", 5, 5)],
)
def test_who_says_how_many_jobs_there_are_gets_no_more(write, said, jobs, at_most):
    folder = write(f'command = "python train.py"\n[chain]\n{said}\n')

    chain = load(folder).chain

    assert (chain.jobs, chain.at_most) == (jobs, at_most)


def test_links_is_an_older_name_of_jobs(write):
    folder = write(
        'command = "python train.py"\n[chain]\nlinks = 3\n[cluster.beluga.chain]\nlinks = 5\n'
    )

    here, there = load(folder), load(folder, cluster="beluga")
    typed = load(folder, cluster="beluga", overrides={"chain.jobs": 2})

    assert [each.chain.jobs for each in (here, there, typed)] == [3, 5, 2]
    assert (here.chain.at_most, there.chain.at_most) == (3, 5)


@pytest.mark.parametrize(
    ("typed", "at_most"),
    [
        ({"chain.jobs": 3}, 30),
        ({"chain.jobs": 40}, 40),
        ({"chain.jobs": 3, "chain.at_most": 5}, 5),
        ({"chain.jobs": 1, "chain.at_most": 1}, 1),
        ({}, 30),
    ],
)
def test_jobs_typed_for_one_run_leave_what_it_may_grow_to(write, typed, at_most):
    folder = write('command = "python train.py"\n[chain]\njobs = 2\nat_most = 30\n')

    assert load(folder, overrides=typed).chain.at_most == at_most


only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
SOMEBODY = 4242


@only_root
@pytest.mark.parametrize(("mode", "below"), [(0o1777, ""), (0o1777, "mine"), (0o2775, "mine")])
def test_a_file_that_another_user_put_above_us_is_not_used(write, mode, below):
    """As in /tmp, or in the folder of a group: it would choose what runs in our name."""
    folder = write('command = "python theirs.py"\n')
    (folder / "mine").mkdir()
    os.chown(folder / "rabaska.toml", SOMEBODY, SOMEBODY)
    folder.chmod(mode)

    with pytest.raises(SettingsError, match="belongs to another user, and is not used"):
        load(folder / below)


@only_root
@pytest.mark.parametrize("below", ["", "theirs"])
def test_the_project_of_a_colleague_is_used_by_who_stands_in_it(write, below):
    folder = write('command = "python train.py"\n')
    (folder / "theirs").mkdir()
    for path in (folder, folder / "theirs", folder / "rabaska.toml"):
        os.chown(path, SOMEBODY, SOMEBODY)
    folder.chmod(0o2775)

    assert load(folder / below).command == ("python", "train.py")


def test_data_of_one_cluster_is_in_its_own_place(write):
    folder = write(
        "command = 'x {data.digits}'\n[data.digits]\npath = 'data/digits'\nfollow_links = true\n"
        "[cluster.beluga.data.digits]\nat = '/project/digits'\n"
        "[cluster.beluga.data.more]\nurl = 'https://x.org/more.zip'\nas = 'shards'\n"
    )

    here = load(folder, cluster="here")
    there = load(folder, cluster="beluga")

    assert here.datasets == (Dataset("digits", folder / "data/digits", follow_links=True),)
    assert there.datasets == (
        Dataset("digits", None, "in place", follow_links=True, at="/project/digits"),
        Dataset("more", None, "shards", url="https://x.org/more.zip"),
    )


def test_a_dataset_named_for_another_cluster_alone_is_missed_only_by_a_run(write):
    folder = write("command = 'x {data.d}'\n[cluster.beluga.data.d]\nat = '/project/d'\n")

    check_data(load(folder, cluster="beluga"))
    with pytest.raises(SettingsError, match="unknown placeholder"):
        check_data(load(folder))


def test_a_dataset_that_one_cluster_has_itself_does_not_travel_there_as_code(tmp_path):
    (tmp_path / "data" / "rings").mkdir(parents=True)
    (tmp_path / "data" / "rings" / "a.npz").write_text("numbers")
    (tmp_path / "train.py").write_text("print()")
    (tmp_path / "rabaska.toml").write_text(
        'command = "python train.py {data}"\n[data.rings]\npath = "data/rings"\n'
        '[cluster.lab.data.rings]\nat = "/scratch/rings"\n'
    )

    project = load(tmp_path, cluster="lab")

    assert sorted(code_names(tmp_path, exclude=not_code(project))) == ["rabaska.toml", "train.py"]
