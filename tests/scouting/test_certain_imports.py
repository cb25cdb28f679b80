"""Which files of a project are meant by an import, and which imports are certain."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rabaska.scouting.certain_imports import certain_calls, certain_imports
from rabaska.scouting.imported_files import Files, reached


def sources(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/').replace('/init', '/__init__')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = Files(folder)
    return reached(found.get("train.py"), found)


def modules(found):
    return [each.module for each in certain_imports(found) if not each.level]


def test_what_a_package_imports_is_certain_where_the_package_is(tmp_path):
    found = sources(tmp_path, train="import models\n", models__init="import einops\n")

    assert modules(found) == ["models", "einops"]


def test_a_package_that_passes_a_name_on_by_chance_makes_nothing_certain(tmp_path):
    found = sources(
        tmp_path,
        train="from models import Net\n",
        models__init=(
            "try:\n    from .fast import Net\nexcept ImportError:\n    from .slow import Net\n"
        ),
        models__fast="import einops\nclass Net: pass\n",
        models__slow="class Net: pass\n",
    )

    assert {each.name for each in found} >= {"models/fast.py", "models/slow.py"}
    assert "einops" not in modules(found)


def test_of_two_files_with_a_name_only_that_beside_the_importer_is_meant(tmp_path):
    found = sources(
        tmp_path,
        train="import lib.a\n",
        lib__a="import utils\n",
        lib__utils="import einops\n",
        utils="import kornia\n",
    )

    assert "einops" in modules(found)
    assert "kornia" not in modules(found)


@pytest.mark.parametrize("dots", ["..", "...", "....."])
def test_an_import_from_above_the_project_is_no_crash(tmp_path, dots):
    found = sources(tmp_path, train="import a.b\n", a__b=f"from {dots} import c\n", c="x = 1\n")

    assert "a/b.py" in [each.name for each in found]


SIMPLE = st.sampled_from(
    ["import a", "from . import b", "from a import *", "from ... import x", "import a.b as c",
     "main()", "x = main()", "sys.exit(main())", "pass", "x: int = f(g())", "lambda: main()"]
)  # fmt: skip
HEADS = st.sampled_from(
    ["if x:", 'if __name__ == "__main__":', "with suppress(E):", "with f() as g:", "def main():",
     "async def f():", "class A:", "while 1:", "for x in main():", "match x:\n  case 1:"]
)  # fmt: skip
TRIES = st.sampled_from(["except ImportError:", "except (A, B):", "finally:", "except* A:"])


def indented(lines):
    return "\n".join(f"    {line}" for block in lines for line in block.splitlines())


def compound(blocks):
    some = st.lists(blocks, min_size=1, max_size=3)
    headed = st.builds(lambda head, body: f"{head}\n{indented(body)}", HEADS, some)
    tried = st.builds(
        lambda body, how, after: f"try:\n{indented(body)}\n{how}\n{indented(after)}",
        some, TRIES, some,
    )  # fmt: skip
    return headed | tried


TEXTS = st.lists(st.recursive(SIMPLE, compound, max_leaves=8), max_size=6).map("\n".join)


@settings(deadline=None, max_examples=200)
@given(train=TEXTS, other=TEXTS)
def test_no_source_breaks_the_readers(tmp_path_factory, train, other):
    folder = tmp_path_factory.mktemp("project")

    found = sources(folder, train=train, a=other, b="import a\n")

    assert not found[0].problem
    list(certain_imports(found))
    list(certain_calls(found))
