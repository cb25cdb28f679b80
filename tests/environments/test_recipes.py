"""A recipe in, shell lines out; the lines are run by a real shell."""

import os
import re
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.environments.small_wheels import make_wheel

from rabaska.domain.projects import EnvironmentRecipe
from rabaska.environments.download import Target, download_command
from rabaska.environments.job_lines import FAILED, BuildSite
from rabaska.environments.recipes import BuiltEnvironment, digest, environment
from rabaska.node.environment import pack_environment

NODE = (sys.executable, "-m", "rabaska.node")
ASK = "python -c 'import sys; print(sys.prefix)'"


def run(lines, **variables):
    script = "\n".join(lines)
    words = ["env", *(f"{name}={value}" for name, value in variables.items()), "bash", "-c", script]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def site(tmp_path):
    (tmp_path / "local").mkdir()
    return BuildSite(envs=str(tmp_path / "envs"), local="${LOCAL_SPACE:-}", program=NODE)


@pytest.fixture
def wheelhouse(tmp_path):
    make_wheel(tmp_path / "wheelhouse", "paddle", "2.1", needs=["canoe"], program="paddle")
    make_wheel(tmp_path / "wheelhouse", "canoe", "1.0")
    return tmp_path / "wheelhouse"


def settled(site, recipe, pins):
    """What the login node leaves when it has found every package."""
    envs = Path(site.envs)
    envs.mkdir(parents=True, exist_ok=True)
    (envs / f"{digest(recipe, site)}.txt").write_text(pins)


def test_the_current_environment_puts_the_shells_python_first():
    ready = environment(
        EnvironmentRecipe(), BuildSite("/envs", search_path="/opt/my env/bin", here=True)
    )

    assert run([*ready.setup, 'echo "${PATH%%:*}"']) == "/opt/my env/bin\n"
    assert not ready.build


def test_variables_with_quotes_reach_the_job_unchanged(site):
    recipe = EnvironmentRecipe(variables={"GREETING": 'it\'s $HOME "here"'})

    ready = environment(recipe, site)

    assert run([*ready.setup, 'printf %s "$GREETING"']) == 'it\'s $HOME "here"'


def test_modules_of_the_site_then_of_the_project_are_loaded_before_activation():
    recipe = EnvironmentRecipe(kind="activate", path="~/my_env", modules=("python/3.8", "gcc"))

    ready = environment(recipe, BuildSite("/envs", modules=("StdEnv", "gcc")))

    loading, activating = ready.setup[1:3]
    assert loading.startswith("module load StdEnv gcc python/3.8 ||")
    assert activating.startswith('source "$HOME/my_env/bin/activate" ||')


def test_a_conda_environment_is_activated_by_its_name():
    ready = environment(EnvironmentRecipe(kind="activate", path="myenv"), BuildSite("/envs"))

    assert "conda activate myenv" in "\n".join(ready.setup)


def test_a_step_that_fails_is_told_to_the_agent(site, tmp_path):
    ready = environment(EnvironmentRecipe(kind="activate", path=str(tmp_path / "nowhere")), site)

    assert run([*ready.setup, f'echo "${FAILED}"']) == "its environment could not be made\n"


def test_a_built_environment_is_named_by_its_content(site):
    one, same = (
        EnvironmentRecipe(requirements="numpy\n"),
        EnvironmentRecipe(requirements="numpy\n", variables={"A": "b"}),
    )

    assert digest(one, site) == digest(same, site)
    assert digest(one, site) != digest(EnvironmentRecipe(requirements="numpy==2.0\n"), site)
    assert digest(one, site) != digest(one, BuildSite(site.envs, wheelhouse=("/cvmfs/wheels",)))


def test_a_virtualenv_is_built_once_and_begun_again_after_a_kill(tmp_path):
    recipe, site = (
        EnvironmentRecipe(kind="virtualenv", python=sys.executable),
        BuildSite(str(tmp_path), here=True),
    )
    ready = environment(recipe, site)
    (tmp_path / digest(recipe, site) / "bin").mkdir(parents=True)  # what a killed build left

    first = subprocess.run(["bash", "-c", ready.build], capture_output=True, check=True)
    again = subprocess.run(["bash", "-c", ready.build], capture_output=True, check=True)

    assert run([*ready.setup, ASK]).strip() == ready.folder
    assert int(first.stdout) > 100
    assert again.stdout == first.stdout  # it is counted when it is built, and not again


def test_two_runs_that_need_the_same_virtualenv_do_not_take_it_from_each_other(tmp_path):
    site = BuildSite(str(tmp_path), here=True)
    build = environment(EnvironmentRecipe(kind="virtualenv", python=sys.executable), site).build
    first = subprocess.Popen(["bash", "-c", build], stdin=subprocess.DEVNULL)
    time.sleep(0.5)

    second = subprocess.run(["bash", "-c", build], stdin=subprocess.DEVNULL, check=False)

    assert (first.wait(), second.returncode) == (0, 0)


@pytest.mark.slow
def test_a_virtualenv_that_is_built_once_takes_the_wheels_that_were_sent(tmp_path, monkeypatch):
    sent, site = make_wheel(tmp_path / "mine", "sextant"), BuildSite(str(tmp_path / "envs"))
    recipe = EnvironmentRecipe(
        kind="virtualenv", requirements="sextant\n", python=sys.executable, build="once"
    )
    name = digest(recipe, site)
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / f"{name}.txt").write_text("sextant==1.0\n")
    with tarfile.open(tmp_path / "envs" / f"{name}.tar", "w") as archive:
        archive.add(sent, sent.name)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # a node without internet
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    found = BuiltEnvironment.read(
        {"digest": name, "maker": "venv", "archive": True, "packages": ["sextant==1.0"]}, site.envs
    )

    ready = environment(recipe, site, found)
    subprocess.run(["bash", "-c", ready.build], input=b"sextant\n", check=True)

    assert run([*ready.setup, "python -c 'import sextant; print(sextant.VERSION)'"]) == "1.0\n"
    assert not (Path(ready.folder) / "wheels").exists()


@pytest.mark.slow
def test_a_virtualenv_is_built_in_the_job_from_the_wheelhouse(site, wheelhouse, tmp_path):
    site = replace(site, wheelhouse=(str(wheelhouse),))
    recipe = EnvironmentRecipe(kind="virtualenv", requirements="paddle\n", python=sys.executable)
    settled(site, recipe, "paddle==2.1\ncanoe==1.0\n")

    ready = environment(recipe, site, BuiltEnvironment(maker="venv"))

    said = run([*ready.setup, "paddle", ASK], LOCAL_SPACE=tmp_path / "local")
    assert re.fullmatch(rf"paddle 2.1\n{tmp_path}/local/rabaska-[0-9a-f]{{16}}/env\n", said)


@pytest.mark.slow
def test_wheels_collected_in_one_archive_are_installed_from_it(site, wheelhouse, tmp_path):
    recipe = EnvironmentRecipe(kind="virtualenv", requirements="paddle\n", python=sys.executable)
    settled(site, recipe, "paddle==2.1\ncanoe==1.0\n")
    archive = tmp_path / "wheels.tar"
    subprocess.run(["tar", "-cf", archive, "-C", wheelhouse, "."], check=True)

    ready = environment(recipe, site, BuiltEnvironment(maker="venv", archive=str(archive)))

    assert run([*ready.setup, "paddle"], LOCAL_SPACE=tmp_path / "local") == "paddle 2.1\n"


def test_where_a_site_has_no_local_space_a_temporary_folder_is_made(site, tmp_path):
    ready = environment(
        EnvironmentRecipe(kind="packed"), site, BuiltEnvironment(archive="/nowhere.tar")
    )

    said = run([*ready.setup[:2], 'echo "$RABASKA_ENV"'], TMPDIR=tmp_path / "local")

    assert re.fullmatch(rf"{tmp_path}/local/rabaska-[0-9a-f]{{16}}/env\n", said)


@pytest.mark.slow
def test_a_packed_virtualenv_works_where_it_is_unpacked(site, wheelhouse, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "made"], check=True)
    install = [tmp_path / "made/bin/pip", "install", "--no-index", "--find-links", wheelhouse]
    subprocess.run([*install, "paddle"], check=True, capture_output=True)
    record = pack_environment.freeze(str(tmp_path / "made"), str(tmp_path), "packed")
    (tmp_path / "made").rename(tmp_path / "gone")

    ready = environment(
        EnvironmentRecipe(kind="packed"), site, BuiltEnvironment.read(record, site.envs)
    )

    said = run([*ready.setup, "paddle", ASK], LOCAL_SPACE=tmp_path / "local")
    assert re.fullmatch(rf"paddle 2.1\n{tmp_path}/local/rabaska-[0-9a-f]{{16}}/env\n", said)


def test_a_conda_archive_is_mended_by_its_own_program(site, tmp_path):
    top = tmp_path / "conda" / "bin"
    top.mkdir(parents=True)
    (top / "python").symlink_to(sys.executable)
    (top / "conda-unpack").write_text("import sys; print('unpacked by', sys.argv[0])")
    (top / "activate").write_text("export CONDA_PREFIX=$RABASKA_ENV\n")
    subprocess.run(["tar", "-czf", tmp_path / "c.tar.gz", "-C", top.parent, "."], check=True)
    record = pack_environment.freeze(str(tmp_path / "c.tar.gz"), str(tmp_path), "conda")

    ready = environment(
        EnvironmentRecipe(kind="packed"), site, BuiltEnvironment.read(record, site.envs)
    )

    said = run([*ready.setup, 'echo "$CONDA_PREFIX"'], LOCAL_SPACE=tmp_path / "local")
    env = next((tmp_path / "local").iterdir()) / "env"
    assert said == f"unpacked by {env}/bin/conda-unpack\n{env}\n"


def test_on_several_nodes_each_unpacks_its_own(tmp_path):
    # Two "nodes": each is a shell with a disk of its own behind the same path.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    subprocess.run(["tar", "-cf", tmp_path / "e.tar", "-C", tmp_path, "bin"], check=True)
    nodes = tmp_path / "nodes"
    nodes.write_text(
        f"""#!/bin/bash
        typed=$(cat)
        rm "$RABASKA_SPACE/owner.json"; rmdir "$RABASKA_SPACE"
        for node in a b; do "$@" <<< "${{typed//$RABASKA_SPACE/{tmp_path}/$node}}"; done
        mv {tmp_path}/a "$RABASKA_SPACE"
        """
    )
    nodes.chmod(0o755)
    site = BuildSite("/envs", local="$LOCAL_SPACE", every_node=str(nodes), program=NODE)

    ready = environment(
        EnvironmentRecipe(kind="packed"), site, BuiltEnvironment(archive=str(tmp_path / "e.tar"))
    )

    said = run([*ready.setup, 'echo "$VIRTUAL_ENV"'], LOCAL_SPACE=tmp_path)
    assert (tmp_path / "b" / "env" / "bin" / "python").exists()
    assert (Path(said.strip()) / "bin" / "python").exists()


def test_the_steps_are_those_of_the_tutorials():
    program = ("python3", "/store/node/1.pyz")
    site = BuildSite("/store/envs", "${SLURM_TMPDIR:-}", modules=("python/3.11",), program=program)
    recipe = EnvironmentRecipe(kind="virtualenv", requirements="torch\n")

    ready = environment(recipe, site, BuiltEnvironment(maker="virtualenv"))

    assert list(ready.setup[2:]) == [
        'RABASKA_SPACE="$(python3 /store/node/1.pyz job-folder --owner $$ "$SLURM_TMPDIR")" &&',
        'export RABASKA_SPACE RABASKA_ENV="$RABASKA_SPACE/env" &&',
        'virtualenv --no-download "$RABASKA_ENV" &&',
        'source "$RABASKA_ENV/bin/activate" &&',
        'python3 /store/node/1.pyz install "$RABASKA_ENV" -- pip install --quiet --no-index '
        f"-r /store/envs/{digest(recipe, site)}.txt ||",
        "  export RABASKA_SETUP_FAILED='its environment could not be made'",
    ]


def test_wheels_are_asked_for_the_nodes_python_and_every_platform_it_accepts(tmp_path):
    target = Target("3.9.18", "aarch64", "glibc-2.17")

    command = download_command(target, tmp_path / "r.txt", tmp_path / "wheels")

    platforms = [command[at + 1] for at, word in enumerate(command) if word == "--platform"]
    assert platforms[0] == "manylinux_2_17_aarch64"
    assert "manylinux2014_aarch64" in platforms
    assert "manylinux_2_28_aarch64" not in platforms
    assert command[command.index("--python-version") + 1] == "3.9"
    assert "--only-binary=:all:" in command


@pytest.mark.slow
def test_the_next_job_on_a_node_finds_the_environment_of_the_last(site, wheelhouse, tmp_path):
    site = replace(site, wheelhouse=(str(wheelhouse),), local_is_shared=True)
    recipe = EnvironmentRecipe(kind="virtualenv", requirements="paddle\n", python=sys.executable)
    settled(site, recipe, "paddle==2.1\ncanoe==1.0\n")
    lines = environment(recipe, site, BuiltEnvironment(maker="venv")).setup

    def job():
        done = subprocess.run(
            ["bash", "-c", "\n".join([*lines, "paddle", ASK])], capture_output=True, text=True,
            check=True, env={**os.environ, "LOCAL_SPACE": str(tmp_path / "local")},
        )  # fmt: skip
        return done.stdout, done.stderr

    first, told = job()
    second, again = job()

    own = tmp_path / "local" / f"rabaska-{os.getuid()}"
    (kept,) = (path for path in own.glob(f"env-{digest(recipe, site)}-*") if path.is_dir())
    assert first == second == f"paddle 2.1\n{kept}\n"
    assert "2 of 2 packages" in told
    assert "rabaska: the environment is on this node already" in again
    assert "packages" not in again
    assert kept.parent.stat().st_mode & 0o077 == 0
