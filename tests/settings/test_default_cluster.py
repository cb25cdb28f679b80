"""The project's own cluster: read and written without touching any other line."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.settings.project_file import default_cluster
from rabaska.settings.write_choice import set_default_cluster

FILES = [
    'command = "python a.py"\n',
    'name = "cats"  # for runs\ncommand = "python a.py"\n[resources]\nwalltime = "1h"\n',
    '# mine\n\ncommand = [\n  "python",\n  "a.py",\n]\n[cluster.x]\nqueue = "on"\n',
    'on = "narval"  # the large one\ncommand = "python a.py"\n',
    "name = 'cats'\r\non = 'x'\r\ncommand = 'p'\r\n",
    "[resources]\ngpus = 1\n",
    "",
    'name = "a\u2028b"\ncommand = """\na\nb"""\n[data.on]\npath = "x"\n',
]


@pytest.mark.parametrize("text", FILES)
def test_only_the_line_of_the_cluster_changes(text, tmp_path):
    file = tmp_path / "rabaska.toml"
    file.write_bytes(text.encode())

    set_default_cluster(tmp_path, "campus")
    once = file.read_bytes().decode()
    set_default_cluster(tmp_path, "campus")

    assert tomllib.loads(once) == {**tomllib.loads(text), "on": "campus"}
    assert file.read_bytes().decode() == once
    assert default_cluster(tmp_path) == "campus"
    others = [line for line in text.split("\n") if not line.startswith("on =")]
    assert [line for line in once.split("\n") if not line.startswith("on =")] == others


def test_a_comment_behind_the_cluster_stays(tmp_path):
    (tmp_path / "rabaska.toml").write_text(FILES[3])

    set_default_cluster(tmp_path, "here")

    assert (tmp_path / "rabaska.toml").read_text().startswith('on = "here"  # the large one\n')


def test_this_computer_is_used_outside_of_projects_and_where_nothing_is_said(tmp_path):
    assert default_cluster(tmp_path) == "here"
    for text in ('command = "x"\n', "on = 3\n", "no toml"):
        (tmp_path / "rabaska.toml").write_text(text)
        assert default_cluster(tmp_path) == "here"


@given(st.text(alphabet='on=" \n[]#ab\r', max_size=40))
def test_a_file_is_changed_to_what_it_should_be_or_not_at_all(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    file = folder / "rabaska.toml"
    file.write_bytes(text.encode())
    try:
        before = tomllib.loads(text)
    except ValueError:
        return

    set_default_cluster(folder, "campus")

    assert tomllib.loads(file.read_bytes().decode()) == {**before, "on": "campus"}


def test_who_may_read_the_file_may_read_it_afterwards(tmp_path):
    file = tmp_path / "rabaska.toml"
    file.write_text(FILES[0])
    file.chmod(0o664)

    set_default_cluster(tmp_path, "campus")

    assert file.stat().st_mode & 0o777 == 0o664
