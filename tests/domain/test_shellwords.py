"""Variables of the cluster are expanded there; anything else a path holds is plain text."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.shell_words import expanding, option_words


def said(word):
    script = f"SCRATCH='/my scratch' HOME=/home/me; printf %s {word}"
    return subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode()


def test_the_home_folder_and_variables_are_expanded():
    assert said(expanding("~/env")) == "/home/me/env"
    assert said(expanding("$SCRATCH/runs")) == "/my scratch/runs"
    assert said(expanding("${SCRATCH}2")) == "/my scratch2"


def test_commands_inside_a_path_are_never_run():
    assert said(expanding('a$(echo b)`echo c`"d')) == 'a$(echo b)`echo c`"d'


@given(st.text(st.characters(exclude_characters="$~\0", exclude_categories=["Cs"])))
def test_text_without_variables_is_one_word_and_stays_as_it_is(text):
    assert said(expanding(text)) == text


def test_an_option_with_its_value_in_one_word_is_split_as_a_shell_would():
    assert option_words("-F /home/me/config") == ["-F", "/home/me/config"]
    assert option_words("-o 'ProxyCommand=ssh -W %h:%p gate'") == [
        "-o",
        "ProxyCommand=ssh -W %h:%p gate",
    ]
    assert option_words("-4") == ["-4"]
    assert option_words("/my files/config") == ["/my files/config"]
    assert option_words("-o it's") == ["-o it's"]
