"""The laws of the code that travels: old Pythons, standard library only, nothing else of ours."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rabaska

PACKAGE = Path(rabaska.__file__).parent
NODE = sorted((PACKAGE / "node").rglob("*.py"))
TRAINING = sorted((PACKAGE / "training").rglob("*.py"))
# Used by the training program only if it has them.
OPTIONAL = {"numpy", "torch", "lightning", "transformers", "keras", "PIL"}


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def modules(path: Path) -> set[str]:
    """The top-level modules a file imports absolutely, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return {module.split(".")[0] for module in found}


def climbs_out(path: Path, room: str) -> list[str]:
    """The relative imports of a file that lead out of its room."""
    depth = len(path.relative_to(PACKAGE / room).parts)
    return [
        "." * node.level + (node.module or "")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.level > depth
    ]


def vermin(minimum: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable, "-c", "from vermin import main; main()", f"-t={minimum}-", "--no-tips",
        "--eval-annotations", "--violations", str(folder),
    ]  # fmt: skip
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("path", NODE, ids=name)
def test_the_node_side_imports_the_standard_library_only(path: Path) -> None:
    assert modules(path) <= sys.stdlib_module_names


@pytest.mark.parametrize("path", NODE, ids=name)
def test_the_node_side_imports_nothing_else_of_ours(path: Path) -> None:
    assert climbs_out(path, "node") == []


@pytest.mark.parametrize("path", TRAINING, ids=name)
def test_what_the_program_imports_needs_no_more_than_it_has(path: Path) -> None:
    assert modules(path) <= sys.stdlib_module_names | OPTIONAL | {"rabaska"}


@pytest.mark.parametrize("path", NODE + TRAINING, ids=name)
def test_every_module_that_travels_says_what_lives_in_it(path: Path) -> None:
    text = path.read_text()

    assert not text.strip() or ast.get_docstring(ast.parse(text))


def test_the_node_side_runs_under_python_3_6() -> None:
    told = vermin("3.6", PACKAGE / "node")

    assert told.returncode == 0, told.stdout


def test_what_the_program_imports_runs_under_python_3_8() -> None:
    told = vermin("3.8", PACKAGE / "training")

    assert told.returncode == 0, told.stdout


def test_the_check_of_the_version_would_notice_newer_code(tmp_path: Path) -> None:
    (tmp_path / "newer.py").write_text("if (found := len('x')):\n    pass\n")

    told = vermin("3.6", tmp_path)

    assert told.returncode == 1
    assert "named expressions" in told.stdout
