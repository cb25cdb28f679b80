"""Folders that appear whole or not at all."""

import os

from rabaska.node import partial_folder


def test_a_finished_folder_has_its_name_and_nothing_else_is_left(tmp_path):
    folder = partial_folder.begin(str(tmp_path), "pack")
    (tmp_path / folder.path / "content").write_text("whole")

    assert partial_folder.finish(folder, str(tmp_path / "pack"))

    assert os.listdir(tmp_path) == ["pack"]


def test_the_second_to_finish_leaves_the_first_alone(tmp_path):
    one, two = (
        partial_folder.begin(str(tmp_path), "pack"),
        partial_folder.begin(str(tmp_path), "pack"),
    )
    for folder, text in ((one, "one"), (two, "two")):
        (tmp_path / folder.path / "content").write_text(text)

    assert partial_folder.finish(one, str(tmp_path / "pack"))
    assert not partial_folder.finish(two, str(tmp_path / "pack"))

    assert (tmp_path / "pack" / "content").read_text() == "one"
    assert os.listdir(tmp_path) == ["pack"]


def test_what_is_being_made_is_not_swept(tmp_path):
    folder = partial_folder.begin(str(tmp_path), "pack")

    partial_folder.sweep(str(tmp_path))

    assert os.path.isdir(folder.path)
    partial_folder.abandon(folder)
    assert os.listdir(tmp_path) == []


def test_a_link_that_looks_like_a_leftover_is_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "store").mkdir()
    os.symlink(tmp_path / "precious", tmp_path / "store" / "pack.0123456789ab.partial")

    partial_folder.sweep(str(tmp_path / "store"))

    assert (tmp_path / "precious").is_dir()


def test_what_others_call_partial_is_left_to_them(tmp_path):
    (tmp_path / "pack.partial").mkdir()
    (tmp_path / "pack.0123456789ab.partial").mkdir()

    partial_folder.sweep(str(tmp_path))

    assert os.listdir(tmp_path) == ["pack.partial"]
