"""Which variables and files are taken for secrets, and that values do not show themselves."""

import pytest

from rabaska.cli.text import plain
from rabaska.domain.projects import EnvironmentRecipe
from rabaska.domain.secrets import (
    Secrets,
    file_looks_secret,
    looks_secret,
    parted,
    read_lines,
)


@pytest.mark.parametrize(
    "name",
    ["WANDB_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "KAGGLE_KEY",
     "MLFLOW_TRACKING_PASSWORD", "comet_api_key", "COMETAPIKEY", "GOOGLE_APPLICATION_CREDENTIALS",
     "AZURE_STORAGE_CONNECTION_STRING", "AWS_ACCESS_KEY_ID", "TOKEN",
     "PGPASSWORD", "DB_PASS", "GITHUB_PAT", "MYSQL_PWD", "RSYNC_PASSWORD", "SSHPASSPHRASE"],
)  # fmt: skip
def test_a_variable_is_taken_for_a_secret_by_its_name(name):
    assert looks_secret(name, "x")


@pytest.mark.parametrize(
    "name",
    ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "OMP_NUM_THREADS", "KEYFRAMES", "MONKEY", "HF_HOME",
     "WANDB_MODE", "PASSWORDLESS", "PATH", "PYTHONPATH", "KEYBOARD", "PWD", "OLDPWD", "BYPASS",
     "PATIENCE", "PGPASSFILE", "COMPASS", "DATA_PATH"],
)  # fmt: skip
def test_an_ordinary_variable_is_not(name):
    assert not looks_secret(name, "x")


def test_an_address_with_a_password_in_it_is_a_secret_whatever_it_is_called():
    assert looks_secret("PIP_INDEX_URL", "https://ada:hunter2@pypi.example.org/simple")
    assert not looks_secret("PIP_INDEX_URL", "https://pypi.example.org/simple")


def test_values_show_themselves_to_nobody():
    seen, hidden = parted({"HF_TOKEN": "hf_1234", "HF_HOME": "/cache"})
    recipe = EnvironmentRecipe(variables=seen, hidden=hidden)

    assert (
        "hf_1234" not in f"{recipe} {recipe!r} {plain(recipe)} {hidden} {[hidden]} {vars(recipe)}"
    )
    assert plain(recipe)["hidden"] == ["HF_TOKEN"]
    assert (Secrets({"A": "1"}) | hidden).reveal() == {"A": "1", "HF_TOKEN": "hf_1234"}


@pytest.mark.parametrize(
    "path",
    [".env", "sub/.env", ".env.local", "prod.env", ".netrc", "keys/id_rsa", "id_ed25519",
     ".ssh/config", ".aws/credentials", "home/.huggingface/token", "kaggle.json", ".pypirc",
     "client_secret_12.json", "store.p12", ".streamlit/secrets.toml"],
)  # fmt: skip
def test_a_file_is_taken_for_a_secret_by_its_path(path):
    assert file_looks_secret(path)


@pytest.mark.parametrize(
    "path",
    [".env.example", "environment.yml", "env.py", "id_rsa.pub", "tokens.py", "keys.json", "aws.py",
     "credentials.py", "secrets.py", "config.json", ".envs/readme.md"],
)  # fmt: skip
def test_an_ordinary_file_is_not(path):
    assert not file_looks_secret(path)


def test_the_lines_of_an_env_file():
    text = """
    # a comment
    A=1
    export B = "two words # not a comment"
    C='x=y' # a comment
    D=plain # a comment
    not a line
    """

    assert dict(read_lines(text)) == {
        "A": "1", "B": "two words # not a comment", "C": "x=y", "D": "plain",
    }  # fmt: skip
