"""Options that were renamed still work under their old names, and no page shows those."""

import click
import pytest
from click.testing import CliRunner

from rabaska.cli.commands import rabaska
from rabaska.cli.options import Renamed


@pytest.mark.parametrize(("words", "old", "value", "parsed"), [
    (["run"], "--links", ["3"], {"jobs": 3}),
    (["resume"], "--links", ["3"], {"jobs": 3}),
    (["logs"], "--link", ["2"], {"job": 2}),
    (["data", "verify"], "--mend", [], {"repair": True}),
])  # fmt: skip
def test_an_old_spelling_means_the_new_option(words, old, value, parsed):
    command: click.Command = rabaska
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found

    context = command.make_context("rabaska", [old, *value])

    assert {name: context.params[name] for name in parsed} == parsed
    assert old not in CliRunner().invoke(rabaska, [*words, "--help"]).output.split()
    assert any(isinstance(option, Renamed) for option in command.params)
