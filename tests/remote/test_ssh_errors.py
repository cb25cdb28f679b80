"""What ssh says, in words of its own, and what we make of it."""

import pytest

from rabaska.remote.ssh_errors import NoAnswer, lost, not_begun

# Unedited words of OpenSSH 7.4 to 9.2, but for names and addresses.
SAID = {
    "ssh: connect to host login port 22: Connection refused": "login refuses connections",
    "ssh: connect to host login port 22: Connection timed out": "login does not answer",
    "ssh: connect to host login port 22: No route to host": "login does not answer",
    "ssh: connect to host login port 22: Network is unreachable": "login does not answer",
    "Connection timed out during banner exchange": "login does not answer",
    "ssh: Could not resolve hostname login: Name or service not known": (
        "there is no host called login"
    ),
    "ssh: Could not resolve hostname login: nodename nor servname provided, or not known": (
        "there is no host called login"
    ),
    "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!   @\nHost key verification failed.": (
        "the host key of login has changed"
    ),
    "Host key verification failed.": "the host key of login is not known yet",
    "me@login: Permission denied (publickey).": "login refused your login",
    "me@login: Permission denied (publickey,gssapi-with-mic).": "login refused your login",
    "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures": (
        "login refused your login"
    ),
    "me@login: Permission denied (publickey,keyboard-interactive).": (
        "login asks for a password or a second factor"
    ),
    "kex_exchange_identification: read: Connection reset by peer": (
        "the connection to login could not be made"
    ),
}


@pytest.mark.parametrize("said", SAID)
def test_each_refusal_is_told_apart_and_quoted(said):
    refused = not_begun("login", f"{said}\r\n")

    assert refused.what == SAID[said]
    assert refused.why == f"ssh said: {said}"
    assert refused.hint
    assert refused.exit_code == 8


def test_only_what_may_pass_by_itself_is_worth_another_try():
    assert isinstance(not_begun("login", "connect: Connection refused"), NoAnswer)
    assert not isinstance(not_begun("login", "Permission denied (publickey)."), NoAnswer)


def test_a_connection_lost_without_a_word_quotes_none():
    broken = lost("login", "", "a transfer")

    assert broken.what == "the connection to login was lost in the middle of a transfer"
    assert broken.why == ""
