"""The short way of `rabaska status`: what it does not wait for."""

import subprocess
import sys

ON_THE_WAY = """
import sys
from rabaska.cli.import_later import import_later
import_later("inspect")
import rabaska.cli.quick_status, rabaska.cli.terminal
import rabaska.steps.read_status, rabaska.knowledge.queue_reasons
import rabaska.remote.login_node, rabaska.schedulers.slurm, rabaska.schedulers.local
"""


def printed_after_it(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ON_THE_WAY + code], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_every_noun_on_the_way_has_a_docstring():
    """Without one, dataclasses writes it, and uses inspect to do so."""
    nouns = """
import dataclasses
for module in [each for name, each in sys.modules.items() if name.startswith("rabaska")]:
    for noun in vars(module).values():
        if dataclasses.is_dataclass(noun) and (noun.__doc__ or "(").startswith(f"{noun.__name__}("):
            print(noun.__name__)
"""

    assert printed_after_it(nouns) == []


def test_what_takes_long_to_import_is_left_out():
    heavy = "print(*{'ast', 'click', 'pydantic', 'rich', 'subprocess'} & set(sys.modules))"

    assert printed_after_it(heavy) == []


def test_a_module_imported_later_is_there_when_it_is_used():
    used = "import inspect; print(inspect.isfunction(import_later), 'ast' in sys.modules)"

    assert printed_after_it(used) == ["True", "True"]
