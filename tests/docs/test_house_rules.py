"""Rules that hold for every file of the project."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LARGEST = 500_000  # bytes
VENDORED = REPOSITORY / "src/rabaska/pages/static/uplot"  # others wrote it
# Where people live or work; those named here live in our examples only.
OF_ONE_MACHINE = re.compile(
    rb"(?<![\w.}~*])/(?:root|(?:home|Users)/(?!(?:ada|ana|alice|me)\b)\w+|work)/[\w.]+"
)
REGISTRIES = re.compile(
    rb"(?:index-url|registry)[ =:\"']+https?://(?!pypi\.org|download\.pytorch\.org)\w+[.:-]"
)
UNFINISHED = re.compile(rb"\b(?:TO" + rb"DO|FIX" + rb"ME|X" + rb"XX)\b")


def files_of_the_project() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("this copy is not a git repository")
    paths = [REPOSITORY / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def told(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def test_no_file_names_a_folder_or_a_registry_of_one_machine():
    found = {
        told(path): sorted({*OF_ONE_MACHINE.findall(content), *REGISTRIES.findall(content)})
        for path in files_of_the_project()
        for content in [path.read_bytes()]
    }

    assert {name: where for name, where in found.items() if where} == {}


def test_the_rule_about_folders_sees_what_it_should():
    paths = [b"cd /" + each for each in (b"root/x", b"home/bob/x", b"work/main")]

    assert all(OF_ONE_MACHINE.search(path) for path in paths)
    assert not OF_ONE_MACHINE.search(b"/home/ada/digits and ~/.ssh/config and ./work/x")


def test_no_archive_is_unpacked_by_what_the_first_python_3_11_lacks():
    source = REPOSITORY / "src" / "rabaska"
    filtered = re.compile(r"extractall\([^)]*filter=")  # known since 3.11.4

    assert [told(path) for path in source.rglob("*.py") if filtered.search(path.read_text())] == []


def test_nothing_is_marked_as_unfinished():
    ours = [
        path
        for path in files_of_the_project()
        if path.parent != VENDORED and path.suffix != ".png"  # which may hold any bytes
    ]
    marked = [told(path) for path in ours if UNFINISHED.search(path.read_bytes())]

    assert marked == []


def test_no_file_is_large():
    large = [told(path) for path in files_of_the_project() if path.stat().st_size > LARGEST]

    assert large == []


def test_every_module_says_in_its_first_line_what_lives_there():
    silent = [
        told(path)
        for path in sorted((REPOSITORY / "src").rglob("*.py"))
        if not (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").strip()
    ]

    assert silent == []


def test_no_module_is_named_for_nothing_in_particular():
    vague = {"utils", "util", "helpers", "common", "core", "manager", "misc"}

    ours = [*REPOSITORY.glob("src/**/*.py"), *REPOSITORY.glob("benchmarks/*.py")]
    assert [told(path) for path in ours if path.stem in vague] == []
