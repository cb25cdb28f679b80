"""Folders that no other user can replace; the other user is real, and so is every attempt."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rabaska.node import private_files
from rabaska.node.data import shared_copy
from rabaska.node.job import job_folder

BOB = 4242  # any number will do: no name is needed for it

root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")


@pytest.fixture
def open_place(tmp_path):
    """A folder like /tmp: everybody may make folders in it."""
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o1777)
    return place


def as_bob(path, *, mode=0o700):
    path.mkdir()
    path.chmod(mode)
    os.chown(path, BOB, BOB)
    return path


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_a_new_folder_is_closed_to_others_and_has_a_name_nobody_guesses(open_place):
    first, second = (private_files.new_folder(str(open_place)) for _ in range(2))

    assert first != second
    assert mode(first) == 0o700


def test_a_missing_folder_is_made_and_closed(open_place):
    private_files.new_folder(str(open_place / "ada"))

    assert mode(open_place / "ada") == 0o700


DANGER = "import sys; from rabaska.node.private_files import danger; print(danger(sys.argv[1]))"


def danger_in_container(path):
    """Why the folder is not safe, asked where the system's owner is one of many without a name."""
    words = ["unshare", "--user", "--map-root-user", sys.executable, "-c", DANGER, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("this computer allows no containers of users")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@root
def test_in_a_container_of_a_user_what_everybody_could_have_made_is_refused(open_place):
    prepared = as_bob(open_place / "ada", mode=0o755)

    assert f"{prepared} belongs to " in danger_in_container(prepared)
    (open_place / "ours").mkdir()
    assert danger_in_container(open_place / "ours") == ""


@root
def test_in_a_container_of_a_user_the_owner_of_the_system_is_trusted(tmp_path):
    os.chown(tmp_path, BOB, BOB)

    assert danger_in_container(tmp_path) == ""


@root
@pytest.mark.parametrize("mode", [0o700, 0o777, 0o1777], ids=oct)
def test_a_folder_that_somebody_else_prepared_is_refused(open_place, mode):
    as_bob(open_place / "ada", mode=mode)

    with pytest.raises(private_files.NotPrivate, match=f"ada belongs to user {BOB}"):
        private_files.new_folder(str(open_place / "ada"))


@root
def test_a_link_that_somebody_else_laid_is_not_followed(open_place, tmp_path):
    (tmp_path / "mine").mkdir()
    (open_place / "ada").symlink_to(tmp_path / "mine")
    os.chown(open_place / "ada", BOB, BOB, follow_symlinks=False)

    assert "belongs to" in private_files.danger(str(open_place / "ada"))
    assert "belongs to" in private_files.danger(str(open_place / "ada" / "below"))


def test_a_link_of_ones_own_is_followed_to_where_it_leads(open_place, tmp_path):
    (open_place / "ada").symlink_to("../mine")
    (tmp_path / "mine").mkdir()
    assert private_files.danger(str(open_place / "ada")) == ""

    (tmp_path / "mine").chmod(0o777)

    assert (
        private_files.danger(str(open_place / "ada")) == f"others may write to {open_place}/../mine"
    )


def test_links_in_a_circle_end(open_place):
    (open_place / "a").symlink_to("b")
    (open_place / "b").symlink_to("a")

    assert "circle" in private_files.danger(str(open_place / "a"))


@pytest.mark.parametrize("what", ["fifo", "file"])
def test_what_is_no_folder_is_refused(open_place, what):
    path = open_place / "ada"
    os.mkfifo(path) if what == "fifo" else path.touch()

    assert private_files.danger(str(path)) == f"{path} is not a folder"
    assert private_files.claim(str(path)) == f"{path} is not a folder"


def test_a_folder_to_which_others_may_write_is_refused_even_if_it_is_ours(open_place):
    (open_place / "ada").mkdir()
    (open_place / "ada").chmod(0o777)

    assert private_files.claim(str(open_place / "ada")) == f"others can list {open_place}/ada"
    with pytest.raises(private_files.NotPrivate, match="others may write"):
        private_files.new_folder(str(open_place / "ada"))


def test_a_folder_of_ours_that_others_may_only_read_is_closed_to_them(open_place):
    (open_place / "ada").mkdir(mode=0o755)

    assert private_files.claim(str(open_place / "ada")) == ""
    assert mode(open_place / "ada") == 0o700


@root
def test_a_job_goes_elsewhere_and_says_so_where_its_folder_is_another_users(open_place, capfd):
    as_bob(open_place / "ada", mode=0o777)

    made = job_folder.make(str(open_place / "ada"))

    assert os.path.dirname(made) == str(open_place)
    assert f"{open_place}/ada is not used: {open_place}/ada belongs to" in capfd.readouterr().err


@root
def test_nodes_agree_on_a_path_that_nobody_could_have_prepared_on_one_of_them(open_place):
    (open_place / "ada").mkdir(mode=0o700)

    made = job_folder.make(str(open_place / "ada"), all_nodes=True)

    assert os.path.dirname(made) == str(open_place)


@root
@pytest.mark.parametrize("prepared", ["folder", "link", "fifo"])
def test_another_node_refuses_what_somebody_prepared_under_the_chosen_name(
    open_place, tmp_path, prepared, capfd
):
    path = open_place / "rabaska-0123456789abcdef"
    (tmp_path / "mine").mkdir(mode=0o700)
    if prepared == "folder":
        path.mkdir(mode=0o777)
    elif prepared == "link":
        path.symlink_to(tmp_path / "mine")
    else:
        os.mkfifo(path)
    os.chown(path, BOB, BOB, follow_symlinks=False)

    assert job_folder.main(["--at", str(path)]) == 1
    assert "there is no private folder on" in capfd.readouterr().err


def test_another_node_makes_the_chosen_folder_and_removes_it_again(open_place):
    path = open_place / "ada" / "rabaska-0123456789abcdef"

    assert job_folder.main(["--at", str(path)]) == 0
    assert job_folder.main(["--at", str(path)]) == 0
    assert mode(path) == 0o700

    job_folder.remove_guest(str(path))
    assert not path.exists()


def test_the_first_node_keeps_its_folder_when_the_others_are_cleaned(open_place):
    made = job_folder.make(str(open_place))

    job_folder.make_at(made)
    job_folder.remove_guest(made)

    assert os.path.isdir(made)


def test_what_a_killed_job_left_is_removed_by_the_next_and_a_living_ones_is_not(open_place):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    left = job_folder.make(str(open_place), owner=ended.pid)
    ended.wait()
    living = job_folder.make(str(open_place), owner=os.getpid())

    job_folder.make(str(open_place))

    assert not os.path.exists(left)
    assert os.path.exists(living)


def test_a_folder_made_on_another_computer_is_left_alone(open_place):
    made = Path(job_folder.make(str(open_place), owner=2**22 - 1))
    owner = made / "owner.json"
    owner.write_text(owner.read_text().replace('"host": "', '"host": "not-'))

    job_folder.make(str(open_place))

    assert made.exists()


def test_the_script_of_a_job_hands_its_folder_to_the_agent_and_to_nobody_else(open_place):
    made = job_folder.make(str(open_place))

    assert job_folder.given({job_folder.FOLDER: made}) == made
    # Slurm hands variables on to the next job.
    ask = (
        "import os; from rabaska.node.job.job_folder import given; print(given(os.environ) or '-')"
    )
    given = {**os.environ, job_folder.FOLDER: made}
    assert subprocess.check_output([sys.executable, "-c", ask], env=given) == b"-\n"


@root
def test_shared_copies_of_data_are_never_kept_where_somebody_else_could_swap_them(open_place):
    as_bob(open_place / "ada", mode=0o777)

    assert shared_copy.own_folder(str(open_place / "ada"), "pack") is None
    assert shared_copy.own_folder(str(open_place), "pack") is not None


@root
def test_a_folder_prepared_under_our_name_is_not_shared(open_place, capfd):
    as_bob(open_place / f"rabaska-{os.getuid()}", mode=0o777)

    assert shared_copy.own_folder(str(open_place), "pack") is None
    assert "is not used" in capfd.readouterr().out
