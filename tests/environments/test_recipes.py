"""A recipe in, shell lines out; the lines are run by a real shell."""

import subprocess
import sys

from rabaska.domain.projects import Recipe
from rabaska.environments.recipes import digest, environment


def test_the_current_environment_puts_the_shells_python_first():
    ready = environment(Recipe(), "/store/envs", search_path="/opt/my env/bin")

    out = subprocess.run(
        ["bash", "-c", "\n".join([*ready.setup, 'echo "${PATH%%:*}"'])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert out.stdout == "/opt/my env/bin\n"
    assert not ready.build


def test_variables_with_quotes_reach_the_job_unchanged():
    recipe = Recipe(variables={"GREETING": 'it\'s $HOME "here"'})

    ready = environment(recipe, "/store/envs")

    script = "\n".join([*ready.setup, 'printf %s "$GREETING"'])
    out = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == 'it\'s $HOME "here"'


def test_modules_are_loaded_before_the_environment_is_activated():
    ready = environment(Recipe(kind="activate", path="~/my_env", modules=("python/3.8",)), "/e")

    assert ready.setup[-2:] == ("module load python/3.8", 'source "$HOME/my_env/bin/activate"')


def test_a_conda_environment_is_activated_by_its_name():
    ready = environment(Recipe(kind="activate", path="myenv"), "/e")

    assert ready.setup[-1].endswith("conda activate myenv")


def test_a_built_environment_is_named_by_its_content():
    one, same = Recipe(requirements="numpy\n"), Recipe(requirements="numpy\n", variables={"A": "b"})

    assert digest(one) == digest(same)
    assert digest(one) != digest(Recipe(requirements="numpy==2.0\n"))


def test_a_virtualenv_is_built_once_and_begun_again_after_a_kill(tmp_path):
    recipe = Recipe(kind="virtualenv", python=sys.executable)
    ready = environment(recipe, str(tmp_path))
    (tmp_path / digest(recipe) / "bin").mkdir(parents=True)  # what a killed build left

    subprocess.run(["bash", "-c", ready.build], input=b"", check=True)
    built = (tmp_path / digest(recipe) / "complete").stat().st_mtime_ns
    subprocess.run(["bash", "-c", ready.build], input=b"", check=True)

    assert (tmp_path / digest(recipe) / "complete").stat().st_mtime_ns == built
    script = "\n".join([*ready.setup, "python -c 'import sys; print(sys.prefix)'"])
    out = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ready.folder
