"""Every command is a function of `rabaska`, with the same words and typed results."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.voyages.conftest import end_everything_of

import rabaska
from rabaska import api
from rabaska.cli import COMMANDS
from rabaska.cli.commands import rabaska as program
from rabaska.errors import DamagedPack, NoSuchRun, SettingsError

SETTINGS = """
name = "tiny"
command = "python train.py --data {data} --output {output}"

[data.numbers]
path = "numbers"

[resources]
walltime = "1m"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "tiny"
    numbers = folder / "numbers" / "low"
    numbers.mkdir(parents=True)
    for number in range(3):
        (numbers / f"{number}.txt").write_text(str(number))
    (folder / "train.py").write_text("import sys\nprint('hello', sys.argv[-1])\n")
    (folder / "rabaska.toml").write_text(SETTINGS)
    monkeypatch.setenv("RABASKA_HOME", str(tmp_path / "home"))
    yield folder
    end_everything_of(tmp_path / "home")


def subcommands(name):
    group = program.get_command(click.Context(program), name)
    return list(group.commands) if isinstance(group, click.Group) else []


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "completion"])
def test_every_command_is_a_function_of_the_same_name(name):
    assert name in rabaska.__all__, f"rabaska.{name}() is missing: see CONTRIBUTING.md"

    function = getattr(rabaska, name)
    for word in subcommands(name):
        assert callable(getattr(function, word)), f"rabaska {name} {word}"
    assert subcommands(name) or callable(function)


def test_options_are_keyword_only_and_every_value_has_a_type():
    functions = [getattr(api, name) for name in api.__all__ if name not in ("data", "clusters")]
    functions += [getattr(api.data, word) for word in subcommands("data")]
    functions += [getattr(api.clusters, word) for word in subcommands("clusters")]

    for function in functions:
        signature = inspect.signature(function)
        assert signature.return_annotation is not signature.empty, function
        assert function.__doc__, function
        for each in signature.parameters.values():
            assert each.annotation is not each.empty, function
            if each.name in ("on", "force", "yes", "offline", "bundle", "secrets", "repair"):
                assert each.kind is each.KEYWORD_ONLY, function


def test_every_function_is_in_the_table_of_the_page_about_python():
    page = Path(__file__).parents[2] / "docs" / "guides" / "from-python.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
    functions = [name for name in api.__all__ if name not in ("data", "clusters")]
    functions += [f"{name}.{word}" for name in ("data", "clusters") for word in subcommands(name)]

    missing = [name for name in functions if not any(f"`{name}(" in row for row in rows)]
    assert missing == [], "add a row for each to the table of docs/guides/from-python.md"


def test_what_a_type_checker_sees_is_what_there_is():
    tree = ast.parse(Path(rabaska.__file__).read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    seen = [name.name for node in imports if node.module == "rabaska.api" for name in node.names]

    assert sorted(rabaska.__all__) == sorted(["__version__", *api.__all__])
    missing = set(api.__all__) - set(seen)
    assert missing == set(), "import them under TYPE_CHECKING in src/rabaska/__init__.py"


def test_importing_rabaska_imports_no_command():
    script = "import sys, rabaska; print(*[m for m in sys.modules if m.startswith('rabaska')])"

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert sorted(done.stdout.split()) == ["rabaska", "rabaska.node", "rabaska.node.version"]


def test_packs_are_listed_read_and_extracted(project, tmp_path):
    (packed,) = rabaska.pack(project)

    (listed,) = rabaska.data.ls(folder=project)
    files = [file.name for file in rabaska.data.ls("numbers") if file.name.endswith(".txt")]
    count = rabaska.data.extract("numbers", into=tmp_path / "out")

    assert (listed.name, listed.files) == ("numbers", 3) == ("numbers", packed.files)
    assert files == ["low/0.txt", "low/1.txt", "low/2.txt"]
    assert rabaska.data.cat("numbers", "low/1.txt") == b"1"
    assert count == 3
    assert (tmp_path / "out" / "low" / "2.txt").read_text() == "2"
    assert rabaska.data.advise(project / "numbers").files == 3


def test_a_damaged_pack_is_found_and_packed_again(project):
    (packed,) = rabaska.pack(project)
    (shard,) = packed.folder.glob("*.tar")
    content = bytearray(shard.read_bytes())
    content[600] ^= 1
    shard.chmod(0o600)
    shard.write_bytes(content)

    (damaged,) = rabaska.data.verify("numbers", repair=True, folder=project)
    (repaired,) = rabaska.data.verify(folder=project)

    assert damaged.problems
    assert repaired.problems == []


def test_a_damaged_pack_is_an_error_where_its_files_are_read(project):
    (packed,) = rabaska.pack(project)
    (shard,) = packed.folder.glob("*.tar")
    shard.chmod(0o600)
    shard.write_bytes(shard.read_bytes()[:100])

    with pytest.raises(DamagedPack):
        rabaska.data.cat("numbers", "low/1.txt")


def test_a_run_is_previewed_submitted_explained_and_forgotten(project):
    planned = rabaska.preview(project, overrides={"chain.jobs": 2})
    submitted = rabaska.run(project, arguments=["--epochs=3"])
    ended = rabaska.wait(submitted.run)

    assert planned.plan.jobs == 2
    assert b"hello --epochs=3" in b"".join(rabaska.logs(submitted.run))
    assert rabaska.explain(submitted.run).state == ended.state.value == "finished"
    rabaska.forget(submitted.run)
    with pytest.raises(NoSuchRun):
        rabaska.status(submitted.run)


def test_a_placeholder_that_means_nothing_is_refused_in_arguments_too(project):
    with pytest.raises(SettingsError):
        rabaska.run(project, arguments=["{nonsense}"])


def test_a_message_is_explained_and_written_down_for_support(project, tmp_path):
    told = rabaska.explain("CUDA out of memory", bundle=tmp_path / "support")

    assert told.known
    assert (tmp_path / "support" / "request.md").is_file()


def test_a_shell_runs_a_command_where_a_job_would_run(project, capfd):
    exit_code = rabaska.shell(project, command=["sh", "-c", "ls train.py; exit 7"])

    assert exit_code == 7
    assert "train.py" in capfd.readouterr().out


def test_a_command_runs_beside_a_running_program(project, capfd):
    (project / "train.py").write_text("import time\nprint('step 1', flush=True)\ntime.sleep(60)\n")
    run = rabaska.run(project).run
    for piece in rabaska.logs(run, follow=True):
        if b"step 1" in piece:
            break

    assert rabaska.exec(run, ["sh", "-c", "ls train.py; exit 3"]) == 3
    assert "train.py" in capfd.readouterr().out


def test_a_project_is_examined_and_planned(project):
    (project / "train.py").write_text("import no_such_package_anywhere\n")
    (project / "go.sh").write_bytes(b"#!/bin/sh\r\necho\r\n")

    before = rabaska.doctor(project, offline=True)
    after = rabaska.doctor(project, fix=True, offline=True)
    plans = rabaska.plan(project, on="narval", total="60h", offline=True)

    assert set(after.found) <= set(before.found)
    assert not any(finding.safe_fix for finding in after.found)
    assert [one.outlook.cluster for one in plans.plans] == ["narval"]


def test_the_store_is_shown_and_cleaned(project):
    run = rabaska.run(project).run
    rabaska.wait(run)

    shown = rabaska.storage()
    unneeded = rabaska.clean()

    assert run in [item.name for item in shown.kept]
    assert unneeded.removed == ()
    assert rabaska.clean(yes=True).unneeded == unneeded.unneeded


def test_clusters_are_listed_and_shown(project):
    names = [cluster.name for cluster in rabaska.clusters.list()]

    profile, seen = rabaska.clusters.show("narval")

    assert names == [cluster.name for cluster in rabaska.clusters()]
    assert "here" in names
    assert (profile.scheduler, seen) == ("slurm", None)


def test_a_run_is_repeated_noted_and_deleted(project):
    first = rabaska.run(project, arguments=["--lr=1"], note="the first", tags=["old"]).run
    rabaska.wait(first)

    dry = rabaska.rerun(first, arguments=["--lr=2"], dry_run=True)
    again = rabaska.rerun(first, arguments=["--lr=2"], walltime="50s")
    second = again.submitted.run
    rabaska.wait(second)

    assert dry.submitted is None
    assert [(one.what, one.before, one.after) for one in again.differences] == [
        ("arguments", "--lr=1", "--lr=2"), ("walltime", "60 s", "50 s"),
    ]  # fmt: skip
    assert b"hello --lr=2" in b"".join(rabaska.logs(second))
    assert rabaska.note(first).text == "the first"
    assert rabaska.note(first, "no more", tags=["new"]).tags == ("old", "new")
    assert rabaska.delete(first, second).deleted == ()
    assert rabaska.delete(first, second, yes=True, fetch=True).deleted == (first, second)
    with pytest.raises(NoSuchRun):
        rabaska.status(first)


def test_a_run_that_failed_is_resumed_with_other_requests(project):
    (project / "train.py").write_text("import os\nos._exit(int(os.environ['RABASKA_JOB']) < 2)\n")
    run = rabaska.run(project, doctor=False).run
    assert rabaska.wait(run).state.value == "failed"

    resumed = rabaska.resume(run, walltime="50s")

    assert resumed.run == run
    assert rabaska.wait(run).walltime.total_seconds() == 50


def test_a_project_uses_a_cluster_and_profiles_are_edited_and_removed(
    project, tmp_path, monkeypatch
):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho '# mine' >> \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))

    file = rabaska.clusters.edit("narval")

    assert rabaska.use(folder=project) == "here"
    assert rabaska.use("narval", folder=project) == rabaska.use(folder=project) == "narval"
    assert file.read_text().endswith("# mine\n")
    assert rabaska.clusters.remove("narval").built_in
    with pytest.raises(SettingsError):
        rabaska.use("narva", folder=project)
