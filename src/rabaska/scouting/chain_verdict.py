"""Whether several jobs make sense for a program, and what to say where they do not."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rabaska.node.record import plan
from rabaska.scouting.checkpoint_contents import refused
from rabaska.scouting.option_roles import Role
from rabaska.scouting.resume_advice import advice
from rabaska.scouting.resume_support import Resumption, by_option, resumption
from rabaska.scouting.scopes import Program
from rabaska.scouting.script_options import VALUE, Option
from rabaska.scouting.script_traits import is_repeated, uses
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import SourceLine
from rabaska.scouting.start_command import Words, given

SEVERAL = 3
IN_WORDS = {
    plan.FULL: "state and counter",
    plan.ITSELF: "by itself, state and counter",
    plan.VARIABLE: "by rabaska's variables",
}
_ALONE = "`jobs` is 1, and `walltime` must be long enough for the whole training"


@dataclass(frozen=True)
class Verdict:
    """How many jobs to propose, and why."""

    jobs: int
    resumed: Resumption
    warning: str = ""
    advice: tuple[str, ...] = ()  # the lines that would change it
    option: Option | None = None  # that was found to take the checkpoint


def verdict(
    script: Script, options: Sequence[Option], roles: Sequence[Role], made: Words
) -> Verdict:
    """Several only where each would resume from what the one before it saved.

    Words that make the program resume are added to `made`.
    """
    resumed, option = _resumption(script, options, roles, made)
    if resumed.resumes:
        saved = refused(script, resumed.place)
        if saved is None:
            return Verdict(SEVERAL, resumed, option=option)
        return Verdict(1, replace(resumed, kind=plan.NOT), _refused(resumed, saved), option=option)
    if resumed.kind == plan.UNREAD or _has_unread_options(script):
        unknown = f"could not tell whether {script.name} resumes from a checkpoint"
        return Verdict(1, resumed, f"{unknown}: {_ALONE}; if you know that it does, set `jobs`")
    return Verdict(1, resumed, f"{_why(script, resumed)}: {_ALONE}", advice(script))


def _has_unread_options(script: Script) -> bool:
    """Whether its options are made of a dictionary by a function: `add_dict_to_argparser`."""
    return any(re.search(r"dict\w*arg|arg\w*_from_dict", name) for name in script.calls)


def _refused(resumed: Resumption, saved: SourceLine) -> str:
    return (
        f"{resumed.place} has weights_only=True and so refuses what {saved} holds besides "
        f"tensors; each job would fail to load it: {_ALONE}; with weights_only=False there, set "
        "`jobs`"
    )


def _why(script: Script, resumed: Resumption) -> str:
    if resumed.kind == plan.WEIGHTS:
        return (
            f"{resumed.place} loads only the weights from a checkpoint, and no counter, so each "
            "job would repeat the training from its first step"
        )
    over = f"{script.name} does not resume from a checkpoint, so each job would start over"
    saved = [write for write in script.writes if write.checkpoint]
    between = [write for write in saved if write.repeated or _is_repeated(script, write.place)]
    place = between[0].place if between else uses(script, "LightningCLI")
    if place:
        return f"{over}; what it saves ({place}) is not loaded again"
    if not saved:
        return f"{over}; no place was found where it saves its state"
    return f"{over}; it saves only at its end ({saved[0].place})"


def _is_repeated(script: Script, place: SourceLine) -> bool:
    """Whether what stands in this line is done again and again."""
    program = Program(script.sources)
    for scope in program.scopes:
        if scope.source.name != place.file:
            continue
        for node in scope.nodes:
            if getattr(node, "lineno", 0) == place.line and is_repeated(node, scope, program):
                return True
    return False


def _resumption(
    script: Script, options: Sequence[Option], roles: Sequence[Role], made: Words
) -> tuple[Resumption, Option | None]:
    """As the words have it; else by what else the program offers, which is then added."""
    words = (*made.command, *made.resume)
    resumed = resumption(script, options, roles, words)
    if resumed.words:
        made.resume += resumed.words
        return resumption(script, options, roles, (*words, *resumed.words)), None
    if resumed.kind != plan.NOT:
        return resumed, None
    weights = resumed
    for option in options:
        taken = option.required or option.spelled in words  # the first job has none to give
        open_to_it = not taken and _may_load(option, script, roles)
        loaded = by_option(script, option) if open_to_it else None
        if loaded and loaded.kind == plan.FULL:
            made.options += given(option, "{checkpoint}")
            return loaded, option
        if loaded and loaded.kind == plan.WEIGHTS and loaded.into_model and weights is resumed:
            weights = loaded
    return weights, None


def _may_load(option: Option, script: Script, roles: Sequence[Role]) -> bool:
    named = {name.lower() for name in script.loads}
    taken = {role.option.name for role in roles}
    loaded = option.name in named or option.dest in named
    return option.kind == VALUE and loaded and option.name not in taken
