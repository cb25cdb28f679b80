"""Checks of saving: too often, never, or without resuming from what was saved."""

import ast
import re
from collections.abc import Iterator

from rabaska.checkup.code_context import Nesting
from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject
from rabaska.domain.amounts import say_count, say_duration
from rabaska.node.record import plan
from rabaska.scouting.source import Source, argument, called, last_word, text

_SAVERS = {"torch.save", "np.save", "numpy.save", "np.savez", "joblib.dump", "pickle.dump"}
_WRITERS = {"cv2.imwrite", "np.savetxt", "numpy.savetxt", "imageio.imwrite", "save_image"}
_SAVES = re.compile(r"save|dump|checkpoint|Trainer$|LightningCLI$|Backup|to_hdf|write", re.I)


def saves_at_every_step(source: Source, nesting: Nesting) -> Iterator[Finding]:
    for call in source.calls():
        if called(call) in _SAVERS and nesting.loops_around(call) > 1:
            yield Finding(
                "code.saves-often",
                "it saves its state at every step of its inner loop",
                str(source.place(call, called(call))),
                "that is slow on shared storage, and slows down everybody else",
                "save once per epoch, or every so many steps or minutes",
                serious=False,
            )


def writes_at_every_step(source: Source, nesting: Nesting) -> Iterator[Finding]:
    for call in source.calls():
        if _is_written(call) and nesting.loops_around(call) > 1:
            yield Finding(
                "code.writes-often",
                "it writes a file at every step of its inner loop",
                str(source.place(call, called(call))),
                "each write is a request to shared storage; thousands of them slow down everybody",
                "open the file once before the loop, or write every so many steps",
                serious=False,
            )


def _is_written(call: ast.Call) -> bool:
    if called(call) == "open":
        return text(argument(call, "mode", 1))[:1] in ("w", "a", "x")
    return called(call) in _WRITERS or last_word(call) in ("savefig", "to_csv", "write_text")


def chain(subject: Subject) -> Iterator[Finding]:
    """Several jobs need a program that saves and goes on."""
    script, project = subject.script, subject.project
    jobs = max(project.chain.jobs, project.chain.at_most or 1)
    if script is None or jobs < 2:
        return
    where = f"{script.name}; {say_count(jobs, 'job')} in [chain]"
    resumption = subject.resumption
    # What resumes without a line that saves is saved by a library: Lightning's Trainer from a file.
    saves = resumption.resumes or any(_SAVES.search(name) for name in script.calls)
    if not saves and not any(write.checkpoint for write in script.writes):
        yield Finding(
            "code.never-saves",
            "it never saves its state",
            where,
            f"each job would start over after {say_duration(project.resources.walltime)}",
            "save model, optimizer and epoch into `{output}` regularly",
            serious=False,
            likely=True,
        )
        return
    if resumption.kind == plan.WEIGHTS:
        yield Finding(
            "code.weights-only",
            "it loads only the weights from a checkpoint",
            resumption.place,
            "no counter is loaded, so each job would repeat the training",
            "load the epoch or step and the optimizer too, and start the training loop there",
            serious=False,
            likely=True,
        )
    elif resumption.kind == plan.UNREAD:
        yield Finding(
            "code.unread-resume",
            "could not tell whether it resumes from a checkpoint",
            resumption.place or where,
            "jobs that start over repeat the same work",
            "nothing, if you know that it does: the chain ends if its second job starts over",
            serious=False,
        )
    elif resumption.kind == plan.NOT:
        words = ", ".join(f'"{word}"' for word in resumption.words)
        yield Finding(
            "code.never-resumes",
            "it saves its state and never resumes from it",
            where,
            "each job would start over",
            f"write `resume = [{words}]`: then it loads what it saved ({resumption.place})"
            if words
            else "give it an option that loads state and counter from a checkpoint, and add it to "
            "`command` with {checkpoint}",
            serious=False,
            likely=True,
        )
