"""The text of a rabaska.toml: findings with, beside each, what it was read from."""

import re
import shlex
from collections.abc import Iterator, Sequence

from rabaska.domain.projects import FILL_IN
from rabaska.domain.toml_text import quoted
from rabaska.scouting.guesses import Findings

_WIDTH = 96


def text(facts: Findings) -> str:
    """A commented rabaska.toml that can be loaded as it is."""
    parts = [
        _head(facts),
        _command(facts),
        _data(facts),
        _environment(facts),
        _variables(facts),
        _resources(facts),
        _chain(facts),
        _checkpoints(facts),
        _output(facts),
        _progress(facts),
        _clusters(),
    ]
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part) + "\n"


def _head(facts: Findings) -> Iterator[str]:
    yield "# Written by `rabaska init` from the files in this folder; nothing was run."
    yield "# Check the guesses, then: rabaska run"
    for warning in facts.warnings:
        yield from _comment(f"NOTE: {warning}")
    for line in facts.advice:
        yield f"# {_printable(line)}"


def _command(facts: Findings) -> Iterator[str]:
    yield f"name = {quoted(facts.name)}"
    yield ""
    yield "# {data}, {output}, {checkpoints} and {checkpoint} become paths on the node. As long as"
    yield "# there is no checkpoint, {checkpoint} is left out together with the option before it."
    if FILL_IN in facts.command:
        yield f"# TO DO: replace {FILL_IN}."
    for what in ("script", "output", "checkpoints", "logs", "resume", "save"):
        if facts.evidence(what):
            yield from _comment(f"{what}: {facts.evidence(what)}")
    for guess in facts.guesses:
        if guess.what == "value":
            yield from _comment(f"{guess.value}: {guess.evidence}")
    yield f"command = {_words(facts.command)}"
    if facts.launch:
        yield f"launch = {quoted(facts.launch)}   # {_printable(facts.evidence('launch'))}"
    if facts.resume:
        yield "# Added to the command once there is a checkpoint."
        yield f"resume = {_words(facts.resume)}"


def _words(words: Sequence[str]) -> str:
    """One text where a shell would split it into the same words, else a list."""
    line = " ".join(words)
    try:
        plain = shlex.split(line) == list(words)
    except ValueError:
        plain = False
    return quoted(line) if plain else f"[{', '.join(quoted(word) for word in words)}]"


def _data(facts: Findings) -> Iterator[str]:
    yield "# Each dataset is packed once, and put on the node's own disk before training."
    evidence = {guess.value: guess.evidence for guess in facts.guesses if guess.what == "data"}
    for name, path in facts.datasets:
        yield from _comment(evidence.get(path, f"TO DO: replace {FILL_IN} with the data folder."))
        yield f"[data.{name}]"
        yield f"path = {quoted(path)}"
    if not facts.datasets:
        yield "# TO DO if the program reads data: name the folder, and use {data} in `command`."
        yield "# [data.samples]"
        yield '# path = "data/samples"'


def _environment(facts: Findings) -> Iterator[str]:
    yield "# On this computer, the Python of the shell that runs `rabaska run`."
    if facts.packages is None:
        yield "# No list of packages was found; a cluster will need a requirements.txt."
    elif facts.packages.builds_virtualenv:
        yield f"# On a cluster, a virtualenv with the packages of {facts.packages.file}."
    elif facts.packages.kind == "conda":
        yield "# A cluster can build its own, once, where it has micromamba, mamba or conda:"
        yield "# [cluster.NAME.environment]"
        yield '# kind = "conda"'
        yield f"# file = {quoted(facts.packages.file)}"
    else:
        yield from _comment(
            f"Packages are listed in {facts.packages.file}. For a cluster, write them to a "
            "requirements.txt too (pip freeze), or name an environment that exists there with "
            'kind = "activate" and path.'
        )


def _variables(facts: Findings) -> Iterator[str]:
    if facts.variables:
        yield from _comment(
            f"{facts.evidence('variables')} saves more than tensors. PyTorch 2.6 and later load "
            "such a file only when told to; it is the program's own."
        )
        yield "[environment.variables]"
        yield from (f"{name} = {quoted(value)}" for name, value in facts.variables)


def _resources(facts: Findings) -> Iterator[str]:
    yield "# What is left out, `run` picks by what the cluster grants, and says so; or let"
    yield "# `rabaska plan --on NAME --write` write it here."
    yield "[resources]"
    yield '# walltime = "1h"   # of one job; longer training continues in the next one'
    if facts.gpus == "needed":
        yield f"gpus = 1   # {facts.evidence('gpus')}"
    elif facts.gpus:
        several = "; it can use several" if facts.gpus == "several" else ""
        yield f"# gpus = 1   # as `run` asks of a cluster: {facts.evidence('gpus')}{several}"


def _chain(facts: Findings) -> Iterator[str]:
    yield "[chain]"
    yield f"jobs = {facts.jobs}   # queued one after another; the chain ends early when done"
    if facts.jobs > 1:
        yield "at_most = 30   # that the run may grow to, if those are too few"


def _checkpoints(facts: Findings) -> Iterator[str]:
    if not facts.patterns:
        yield "# [checkpoints]"
        yield '# patterns = ["*.pt"]   # how the program names them; the common names are known'
        return
    yield "[checkpoints]"
    for guess in facts.guesses:
        if guess.what == "patterns":
            yield from _comment(f"{guess.evidence} writes {guess.value}")
    yield f"patterns = {_list(facts.patterns)}"


def _output(facts: Findings) -> Iterator[str]:
    if not facts.keep:
        return
    yield "# Written next to the code, whatever the options say: kept from job to job, and fetched."
    for guess in facts.guesses:
        if guess.what == "keep":
            yield from _comment(f"{guess.evidence} writes {guess.value}")
    yield "[output]"
    yield f"keep = {_list(facts.keep)}"


def _progress(facts: Findings) -> Iterator[str]:
    if facts.progress:
        yield "[progress]"
        yield from _comment(facts.evidence("progress"))
        yield f"pattern = {_pattern(facts.progress)}"


def _clusters() -> Iterator[str]:
    yield "# What differs on one cluster:"
    yield "# [cluster.beluga]"
    yield '# account = "def-prof"'
    yield '# resources = {walltime = "3h", gpus = 1}'


def _comment(text: str) -> Iterator[str]:
    """`text` as comment lines of a bearable width."""
    line = "#"
    for word in _printable(text).split():
        if len(line) + len(word) > _WIDTH and line != "#":
            yield line
            line = "# "
        line += f" {word}"
    if line != "#":
        yield line


def _printable(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(quoted(value) for value in values)}]"


def _pattern(expression: str) -> str:
    return quoted(expression) if "'" in expression else f"'{expression}'"
