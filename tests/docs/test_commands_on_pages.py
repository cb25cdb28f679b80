"""Every command of every page is run, in order, and prints what the page says."""

import pytest
from pages import PAGES, Part, parts, steps
from shapes import difference, shape

PARTS = [part for page in PAGES for part in parts(page)]


def marked(part: Part) -> object:
    needs = [(pytest.mark.real, part.needs_lab), (pytest.mark.torch, part.needs_torch)]
    return pytest.param(part, id=part.name, marks=[mark for mark, needed in needs if needed])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", [marked(part) for part in PARTS])
def test_every_command_of_the_page_works_and_prints_what_it_shows(part, reader_of):
    if part.needs_torch:
        pytest.importorskip("torch")
    reader = reader_of(part)

    for step in part.steps:
        exit_code, printed = reader.follows(step)

        assert exit_code == 0, f"{step.command}\n{printed}"
        if step.language == "console":
            assert not difference(step.printed, printed), f"{step.command}\n{printed}"


def test_the_readme_shows_the_journey_to_a_cluster_and_one_on_this_computer():
    journeys = [part for part in PARTS if part.page.name == "README.md" and len(part.steps) > 2]

    assert [part.needs_lab for part in journeys] == [True, False]
    for part in journeys:
        typed = " ".join(step.command for step in part.steps)
        assert all(f"rabaska {word}" in typed for word in ("init", "run", "fetch"))


def test_files_and_here_documents_of_a_page_are_part_of_what_its_reader_does():
    page = """\
<!-- the file a.py -->
```python
print(1)
```
```console
$ cat >> a.py <<END
> print(2)
> END
$ rabaska explain CUDA
> is printed
```
"""

    written, added, printed = steps(page)

    assert (written.file, written.command) == ("a.py", "print(1)\n")
    assert (added.command, added.printed) == ("cat >> a.py <<END\nprint(2)\nEND", ())
    assert (printed.command, printed.printed) == ("rabaska explain CUDA", ("> is printed",))


def test_names_numbers_and_times_do_not_count_and_words_do():
    page = ["run digits-8485: submitted to here, id 1", "took 3 s"]

    assert difference(page, "run digits-00ff: submitted to here, id 12\ntook 1 min 20 s") == ""
    assert "refused" in difference(page, "run digits-00ff: refused by here\ntook 2 s")
    assert "submitted" in difference(page, "took 2 s")
    assert shape("4,000 files, 3.2 MB") == shape("10 files, 12 kB")


def test_left_out_lines_may_be_anything_but_what_is_shown_must_come_in_order():
    page = ["…", "first", "…", "second"]

    assert difference(page, "noise\nfirst\nnoise\nsecond\n") == ""
    assert "second" in difference(page, "second\nfirst\n")
