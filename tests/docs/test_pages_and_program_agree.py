"""What the pages name exists, and what exists is on a page."""

import re
import subprocess
import sys

import click
import pytest
from pages import PAGES, REPOSITORY, anchors, links, name_of, rabaska_commands, words

from rabaska import errors
from rabaska.cli import COMMANDS, overview
from rabaska.cli.commands import rabaska

REFERENCE = REPOSITORY / "docs" / "reference"


def meant(command: str) -> tuple[click.Command, list[str]]:
    """The command of the program that is meant, and the options it is given."""
    found: click.Command = rabaska
    options: list[str] = []
    for word in words(command)[1:]:
        if word == "--":
            break
        if isinstance(found, click.Group) and not word.startswith("-") and word.islower():
            inner = found.get_command(click.Context(found), word)
            assert inner is not None, f"there is no command `{word}`"
            found = inner
        elif word.startswith("-"):
            options.append(word.partition("=")[0])
    return found, options


def known_options(command: click.Command) -> set[str]:
    context = click.Context(command, help_option_names=["-h", "--help"])
    return {name for each in command.get_params(context) for name in each.opts}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_and_option_on_the_page_exists(page):
    for mention in rabaska_commands(page):
        command, options = meant(mention)

        assert set(options) <= known_options(command), mention


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_the_page_leads_somewhere(page):
    for to in links(page):
        path, _, anchor = to.partition("#")
        target = (page.parent / path).resolve() if path else page

        assert target.exists(), f"{name_of(page)} points to {to}"
        assert not anchor or anchor in anchors(target), f"{name_of(page)} points to {to}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_of_the_project_that_the_page_names_is_there(page):
    named = re.findall(
        r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`", page.read_text("utf-8")
    )

    made_by_us = {"benchmarks/results.json"}
    assert [path for path in named if not (REPOSITORY / path).exists()] == [
        path for path in named if path in made_by_us and not (REPOSITORY / path).exists()
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_table_in_capitals_is_in_a_file_that_its_paragraph_names(page):
    """`STEP` in `src/…/printed_line.py`: a module that was divided leads newcomers astray."""
    for paragraph in re.split(r"\n\n|\n(?=\d+\. |- |\| )", page.read_text("utf-8")):
        files = re.findall(r"`((?:src|tests)/[\w./-]+\.py)`", paragraph)
        code = "\n".join((REPOSITORY / file).read_text("utf-8") for file in files)
        for name in re.findall(r"`([A-Z][A-Z_]{2,})`", paragraph) if files else ():
            assert re.search(rf"^{name}\b.*=", code, re.MULTILINE), f"{name} is not in {files}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_on_the_page_is_in_the_makefile(page):
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")

    for target in re.findall(r"(?:^|`|\s)make ([a-z]+)(?=`|\s+#|$)", page.read_text("utf-8"), re.M):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"


def test_every_command_of_the_program_is_in_the_reference_and_on_another_page():
    reference = (REFERENCE / "cli.md").read_text("utf-8")
    mentioned = {
        words(each)[1]
        for page in PAGES
        if page.parent != REFERENCE
        for each in rabaska_commands(page)
    }

    for name in COMMANDS:
        assert f"\n## rabaska {name}\n" in reference, "run `make docs`"
        assert name in mentioned or name == "forget", f"no page tells of `rabaska {name}`"


def test_every_page_can_be_reached_from_the_readme():
    readme = REPOSITORY / "README.md"
    reached, waiting = {readme}, [readme]
    while waiting:
        page = waiting.pop()
        for to in links(page):
            target = (page.parent / to.partition("#")[0]).resolve()
            if target.suffix == ".md" and target not in reached:
                reached.add(target)
                waiting.append(target)

    pages = [page for page in PAGES if page.is_relative_to(REPOSITORY / "docs")]
    assert [name_of(page) for page in pages if page not in reached] == []


def test_the_reference_is_up_to_date(tmp_path):
    subprocess.run([sys.executable, REPOSITORY / "docs" / "generate.py", tmp_path], check=True)

    written = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in REFERENCE.iterdir()}
    assert kept == written, "run `make docs`"


def test_the_table_of_exit_codes_names_every_error_with_its_code():
    page = (REFERENCE / "cli.md").read_text("utf-8")

    for error in errors.RabaskaError.__subclasses__():
        assert f"| {error.exit_code} | `rabaska.errors.{error.__name__}` |" in page


def test_the_quick_overview_is_the_page_that_click_prints():
    by_click = rabaska.get_help(click.Context(rabaska, info_name="rabaska"))
    shown = {name for each in rabaska.get_params(click.Context(rabaska)) for name in each.opts}

    assert by_click.rstrip() == overview().rstrip()
    assert shown <= set(re.findall(r"--?[a-z]+", overview()))


def test_the_overview_and_each_command_tell_the_same():
    for name, (_, sentence) in COMMANDS.items():
        assert sentence.endswith(".")
        assert rabaska.get_command(click.Context(rabaska), name) is not None
