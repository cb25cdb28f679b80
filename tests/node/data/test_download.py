"""Files from an address: whole and proven, or not there; what arrived is not asked for again."""

import hashlib
import os

import pytest
from tests.http_server import file_server

from rabaska.node.data import download as downloads
from rabaska.node.data.download import CannotDownload, download, file_name, shown

CONTENT = os.urandom(900_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(downloads, "_PAUSE", 0.01)
    with file_server() as served:
        yield served


def ignored(_done, _total):
    pass


def test_a_file_arrives_with_its_digest(server, tmp_path):
    url = server.serves("/cats.bin", CONTENT)

    arrived = download(url, str(tmp_path / "cats.bin"), DIGEST, ignored)

    assert (arrived.size, arrived.sha256) == (len(CONTENT), DIGEST)
    assert os.listdir(tmp_path) == ["cats.bin"]


def test_a_connection_that_breaks_is_resumed_where_it_broke(server, tmp_path):
    url = server.serves("/cats.bin", CONTENT)
    server.breaks_after = [300_000, 200_000]

    download(url, str(tmp_path / "cats.bin"), DIGEST, ignored)

    assert (tmp_path / "cats.bin").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=500000-"]


def test_a_command_that_was_killed_is_resumed_by_the_next(server, tmp_path):
    url, path = server.serves("/cats.bin", CONTENT), str(tmp_path / "cats.bin")
    server.breaks_after = [400_000]

    class Killed(BaseException):
        pass

    def kill(done, _total):
        if done >= 200_000:
            raise Killed

    with pytest.raises(Killed):
        download(url, path, DIGEST, kill)
    assert not os.path.exists(path)
    begun = os.path.getsize(path + ".partial")
    server.ranges.clear()
    server.breaks_after.clear()

    assert download(url, path, DIGEST, ignored).sha256 == DIGEST
    assert begun
    assert server.ranges == [f"bytes={begun}-"]


def test_a_file_that_changed_meanwhile_is_brought_from_its_beginning(server, tmp_path):
    url, path = server.serves("/cats.bin", b"old" * 100_000), str(tmp_path / "cats.bin")
    server.breaks_after = [100_000, 0, 0, 0, 0, 0]
    with pytest.raises(CannotDownload):
        download(url, path, "", ignored)
    server.serves("/cats.bin", CONTENT, tag="two")

    assert download(url, path, DIGEST, ignored).sha256 == DIGEST


def test_a_server_that_resumes_a_file_that_changed_does_not_mix_the_two(server, tmp_path):
    """Not all servers know `If-Range`; all of them tell which file they send."""
    url, path = server.serves("/cats.bin", b"old" * 100_000), str(tmp_path / "cats.bin")
    server.breaks_after, server.compares = [100_000, 0, 0, 0, 0, 0], False
    with pytest.raises(CannotDownload):
        download(url, path, "", ignored)
    server.serves("/cats.bin", CONTENT, tag="two")

    assert download(url, path, "", ignored).sha256 == DIGEST


def test_a_kill_just_after_a_change_does_not_mix_the_two(server, tmp_path, monkeypatch):
    url, path = server.serves("/cats.bin", b"old" * 100_000), str(tmp_path / "cats.bin")
    server.breaks_after = [100_000, 0, 0, 0, 0, 0]
    with pytest.raises(CannotDownload):
        download(url, path, "", ignored)
    server.serves("/cats.bin", CONTENT, tag="two")

    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(downloads, "_receive", kill)
        with pytest.raises(Killed):
            download(url, path, "", ignored)

    assert download(url, path, "", ignored).sha256 == DIGEST


def test_a_server_that_resumes_elsewhere_is_asked_for_all_of_it(server, tmp_path):
    url, path = server.serves("/cats.bin", CONTENT), str(tmp_path / "cats.bin")
    server.breaks_after, server.skips = [300_000], 7

    assert download(url, path, "", ignored).sha256 == DIGEST
    assert server.ranges == [None, "bytes=300000-", None]


def test_an_address_may_have_letters_of_any_language(server, tmp_path):
    server.serves("/donn%C3%A9es%201.bin", CONTENT)
    url = server.address + "/données 1.bin"

    assert download(url, str(tmp_path / "cats.bin"), "", ignored).sha256 == DIGEST


def test_an_impossible_address_is_told_at_once(tmp_path):
    with pytest.raises(CannotDownload, match="cannot be downloaded"):
        download(f"http://{'a' * 70}.org/x", str(tmp_path / "x"), "", ignored)


def test_a_file_that_is_not_what_was_promised_is_not_kept(server, tmp_path):
    url = server.serves("/cats.bin", b"something else")

    with pytest.raises(CannotDownload, match="is not what `sha256` promises") as refusal:
        download(url, str(tmp_path / "cats.bin"), DIGEST, ignored)

    assert DIGEST in refusal.value.why
    assert os.listdir(tmp_path) == []


def test_an_address_that_gives_nothing_is_told_at_once(server, tmp_path):
    with pytest.raises(CannotDownload) as refusal:
        download(server.address + "/dogs?token=secret", str(tmp_path / "dogs"), "", ignored)

    assert "404" in refusal.value.why
    assert "secret" not in refusal.value.what
    assert len(server.ranges) == 1


def test_a_file_that_had_arrived_whole_is_not_brought_again(server, tmp_path):
    url, path = server.serves("/cats.bin", CONTENT), tmp_path / "cats.bin"
    download(url, str(path), "", ignored)
    path.rename(f"{path}.partial")  # killed before it got its name
    server.ranges.clear()

    assert download(url, str(path), DIGEST, ignored).sha256 == DIGEST


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://x.org/a/cats.tar.gz?x=1", "cats.tar.gz"),
        ("https://x.org/%2e%2e", "download"),
        ("https://x.org/", "download"),
        ("https://x.org/a%2fb c", "b_c"),
    ],
)
def test_names_of_files_are_plain(url, name):
    assert file_name(url) == name


def test_no_secret_of_an_address_is_shown():
    assert shown("https://ada:pw@x.org:80/a?token=1#b") == "https://x.org:80/a"
