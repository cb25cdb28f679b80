"""A command that does not answer is given up with all that it started."""

import pytest

from rabaska.node.login import status_query

# As `sh -c` schedulers do: who is asked is the child of a shell, and holds its output.
HANGS = "echo half; {session} sh -c 'sleep 6; touch {late}'; true"


@pytest.mark.parametrize("session", ["", "setsid"], ids=["a child", "with a session of its own"])
def test_a_hung_queue_behind_a_shell_is_given_up(tmp_path, session):
    late = tmp_path / "late"
    words = ["sh", "-c", HANGS.format(session=session, late=late)]

    told = status_query._answer(status_query._begin(words), 0.5)

    assert told["exit_code"] == status_query.NO_ANSWER
    assert not late.exists()
