"""Checks of the program: what works on a laptop and not in a job."""

import ast
import re
from collections.abc import Iterator

from rabaska.checkup.check_saving import chain, saves_at_every_step, writes_at_every_step
from rabaska.checkup.code_context import Nesting
from rabaska.checkup.finding import Finding, SafeFix
from rabaska.checkup.subject import Subject
from rabaska.domain.amounts import say_count
from rabaska.domain.queue_limits import line
from rabaska.scouting import script_traits
from rabaska.scouting.certain_imports import certain_calls
from rabaska.scouting.source import Source, argument, called, last_word, literal, text

_PLOTS = {"plt.show", "matplotlib.pyplot.show", "pyplot.show", "pylab.show"}
_WINDOWS = {"cv2.imshow", "cv2.namedWindow", "cv.imshow", "tkinter.Tk", "tk.Tk", "Tk"}
_SCREENS = {"TkAgg", "Qt5Agg", "QtAgg", "GTK3Agg", "WXAgg", "MacOSX"}
_PROMPTS = {"input", "breakpoint", "pdb.set_trace", "ipdb.set_trace", "getpass.getpass"}
_PERSONAL_PATH = re.compile(r"(/home/\w|/Users/\w|[A-Za-z]:[\\/]\w|/content/|/kaggle/)")
_MANY_GPUS = re.compile(
    r"(DataParallel|DistributedDataParallel|FullyShardedDataParallel|fully_shard|init_process_group"
    r"|MirroredStrategy|MultiWorkerMirroredStrategy|Accelerator|Fabric|Trainer|deepspeed.initialize"
    r"|hvd.init|multi_gpu_model|pmap|make_mesh|spawn)$"
)

_LAUNCHERS = re.compile(
    r"torchrun|accelerate|deepspeed|mpirun|srun|horovodrun|distributed\.(launch|run)"
)


def checks(subject: Subject) -> Iterator[Finding]:
    certain = {id(call) for _, call in certain_calls(subject.sources)}
    for source in subject.sources:
        nesting = Nesting(source, subject.sources)
        yield from _windows(source, nesting, subject)
        yield from _waits_for_input(source, nesting, certain)
        yield from _personal_paths(source, nesting, subject)
        yield from saves_at_every_step(source, nesting)
        yield from writes_at_every_step(source, nesting)
        yield from _workers(source, subject)
        yield from _bf16(source, subject)
    yield from chain(subject)
    yield from _idle_gpus(subject)
    yield from _missing_gpu(subject)
    yield from _line_ends(subject)
    yield from _interactive_jobs(subject)


def _windows(source: Source, nesting: Nesting, subject: Subject) -> Iterator[Finding]:
    why = "compute nodes have no screen: the program would wait or stop there"
    for call in source.calls():
        name = called(call)
        if nesting.is_optional(call):
            continue
        if name in _PLOTS and "MPLBACKEND" not in subject.variables:
            yield Finding(
                "code.window",
                "it shows a plot",
                str(source.place(call, name)),
                "compute nodes have no screen: nobody sees it, and it is lost unless it is saved",
                'write `MPLBACKEND = "Agg"` under [environment.variables]: then `show` does '
                "nothing; `plt.savefig` saves the plot",
                safe_fix=SafeFix("variable", "MPLBACKEND", "Agg"),
                serious=False,
                likely=True,
            )
        elif name in _WINDOWS:
            yield Finding(
                "code.window",
                "it opens a window",
                str(source.place(call, name)),
                why,
                "write the picture to a file instead",
                serious=False,
                likely=True,
            )
        elif name == "matplotlib.use" and text(argument(call, "backend", 0)) in _SCREENS:
            yield Finding(
                "code.backend",
                "it chooses a plotting backend that needs a screen",
                str(source.place(call, name)),
                why,
                'write `matplotlib.use("Agg")`',
                serious=False,
                likely=True,
            )


def _waits_for_input(source: Source, nesting: Nesting, certain: set[int]) -> Iterator[Finding]:
    for call in source.calls():
        if called(call) in _PROMPTS and not nesting.is_optional(call):
            yield Finding(
                "code.asks",
                "it waits for keyboard input",
                str(source.place(call, called(call))),
                "a job has no keyboard",
                "make it an option of the program, with its value in `command` or after `--`",
                serious=id(call) in certain,
                likely=True,
            )


def _personal_paths(source: Source, nesting: Nesting, subject: Subject) -> Iterator[Finding]:
    given = " ".join(subject.project.command)
    sentences = _docstrings(source)
    defaults = {
        id(argument(call, "default")): text(argument(call, "", 0))
        for call in source.calls()
        if last_word(call) == "add_argument"
    }
    for node in source.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        match = _PERSONAL_PATH.match(node.value)
        if not match or id(node) in sentences or "\n" in node.value:
            continue
        if nesting.is_compared(node) or nesting.is_optional(node):
            continue
        option = defaults.get(id(node), "")
        if option and option in given:
            continue
        yield Finding(
            "code.path",
            f"the path {node.value!r} exists on one computer only",
            str(source.place(node)),
            "the cluster has other folders",
            "make it an option, and give it `{data}` or `{output}` in `command`",
            serious=False,
            likely=True,
        )


def _docstrings(source: Source) -> set[int]:
    """Constants that stand alone: documentation, which may name any path."""
    return {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}


def _workers(source: Source, subject: Subject) -> Iterator[Finding]:
    if subject.cluster.is_here:
        return
    cores = subject.project.resources.cores
    for call in source.calls():
        workers = argument(call, "num_workers")
        if last_word(call) != "DataLoader" or workers is None:
            continue
        place = str(source.place(call, "num_workers"))
        if isinstance(workers, ast.Call) and last_word(workers) == "cpu_count":
            yield Finding(
                "code.workers",
                "it starts a worker for each core of the node",
                place,
                "a job gets only some of them, and the workers would wait for each other",
                "use `len(os.sched_getaffinity(0))`",
                serious=False,
            )
            continue
        number = _number(workers, subject)
        if number > (cores or 1):
            has = say_count(cores, "core") if cores else "no `cores`, which means one"
            yield Finding(
                "code.workers",
                f"it starts {say_count(number, 'worker')}, and the job requests {has}",
                place,
                "workers without cores of their own slow each other down",
                f"write {line('cores', number, subject.project)}, or start fewer",
                serious=False,
            )


def _number(node: ast.expr, subject: Subject) -> int:
    """A number that is written there, or the default of the option it comes from."""
    if isinstance(node, ast.Call) and called(node) == "int" and node.args:
        node = node.args[0]
    value = literal(node)
    if isinstance(value, int):
        return value
    if not isinstance(node, ast.Attribute):
        return 0
    wanted = f"--{node.attr}".replace("_", "-")
    if any(word.replace("_", "-").startswith(wanted) for word in subject.project.command):
        return 0
    defaults = (_default(call, wanted) for source in subject.sources for call in source.calls())
    return next((number for number in defaults if number is not None), 0)


def _default(call: ast.Call, option: str) -> int | None:
    spellings = [text(spelling).replace("_", "-") for spelling in call.args]
    value = literal(argument(call, "default"))
    declares = last_word(call) in ("add_argument", "option") and option in spellings
    return value if declares and isinstance(value, int) else None


def _bf16(source: Source, subject: Subject) -> Iterator[Finding]:
    gpu = subject.gpu
    if gpu is None or gpu.bf16 or "is_bf16_supported" in {last_word(c) for c in source.calls()}:
        return
    for node in source.nodes:
        if _uses_bf16(node):
            yield Finding(
                "code.bf16",
                f"it computes in bfloat16, which a {gpu.name.upper()} does not support",
                str(source.place(node)),
                "it fails there, or is emulated and very slow",
                "use float16 with a gradient scaler, or a GPU from A100 on",
                serious=False,
                likely=True,
            )
            return


def _uses_bf16(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "bfloat16"
    if not isinstance(node, ast.keyword):
        return False
    value = literal(node.value)
    precise = node.arg in ("precision", "mixed_precision") and str(value).startswith("bf16")
    return precise or (node.arg == "bf16" and value is True)


def _idle_gpus(subject: Subject) -> Iterator[Finding]:
    resources, script = subject.project.resources, subject.script
    if (
        script is None
        or resources.gpus * resources.nodes < 2
        or subject.project.launch != "program"
    ):
        return
    if _LAUNCHERS.search(" ".join(subject.project.command)):
        return
    if any(_MANY_GPUS.search(name) for name in script.calls):
        return
    yield Finding(
        "code.idle-gpus",
        f"the job requests {resources.gpus * resources.nodes} GPUs, and the program uses one",
        f"{script.name}; [resources] gpus",
        "PyTorch and TensorFlow use one GPU unless the program asks for more",
        f"write {line('gpus', 1, subject.project)}, or use DistributedDataParallel and "
        "set `launch`",
        serious=False,
        likely=True,
    )


def _missing_gpu(subject: Subject) -> Iterator[Finding]:
    """A program that never asks whether there is a GPU; an option may tell it to do without."""
    script, project = subject.script, subject.project
    if script is None or project.resources.gpus or subject.cluster.is_here:
        return
    found = script_traits.gpus(script)
    does_without = any("cpu" in word.lower() for word in project.command)
    if found is None or does_without or script_traits.asks_for_gpu(script):
        return
    yield Finding(
        "code.needs-gpu",
        "it uses a GPU, and the job requests none",
        str(found[1]),
        "without one such a program stops at that line",
        f"write {line('gpus', 1, project)}",
        serious=False,
        likely=True,
    )


def _line_ends(subject: Subject) -> Iterator[Finding]:
    for name, content in subject.shell_scripts.items():
        if b"\r\n" in content or content.startswith(b"\xef\xbb\xbf"):
            yield Finding(
                "code.line-ends",
                "it has Windows line endings",
                name,
                "bash reads the invisible character at the end of a line as part of the last word",
                "save it with Unix line endings (LF) and without BOM",
                serious=any(word.removeprefix("./") == name for word in subject.project.command),
                likely=True,
                safe_fix=SafeFix("line ends", name),
            )


def _interactive_jobs(subject: Subject) -> Iterator[Finding]:
    for name, content in subject.shell_scripts.items():
        directives = re.search(rb"^#(SBATCH|PBS|\$) ", content, re.MULTILINE)
        asks = re.search(rb"^\s*(salloc|msub -I|qsub -I)\b", content, re.MULTILINE)
        if directives and asks:
            line = content[: asks.start()].count(b"\n") + 1
            yield Finding(
                "code.salloc",
                "a job script requests another, interactive job",
                f"{name}, line {line}",
                "it would wait for a terminal, and a job has none",
                "remove the line: the directives at the top already request the resources",
                serious=False,
                likely=True,
            )
