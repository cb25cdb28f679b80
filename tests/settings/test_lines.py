"""The scanner that finds lines agrees with tomllib about what a file holds."""

import tomllib

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from rabaska.settings.document import key_lines

keys = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=8
) | st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True)
texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
scalars = (
    texts
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.datetimes()
    | st.dates()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(keys, values, max_size=6)


def paths(value, path=()):
    """Every place in `value` that has a key or a number."""
    inside = []
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for key, inner in inside:
        yield (*path, key)
        yield from paths(inner, (*path, key))


@given(documents)
def test_every_key_of_any_document_is_found(document):
    text = tomlkit.dumps(document)

    found = key_lines(text)

    assert set(found) == set(paths(tomllib.loads(text)))


@given(documents)
def test_a_key_stands_on_the_line_that_is_told(document):
    text = tomlkit.dumps(document)

    for path, line in key_lines(text).items():
        if len(path) == 1:
            written = text.split("\n")[line - 1].lstrip("[").split("=")[0]
            first_key = tomlkit.dumps({path[0]: 0}).split("=")[0].strip()
            assert first_key in written


def test_lines_are_those_that_a_reader_would_count():
    text = (
        "# a comment\n"  # 1
        'title = """two\n'  # 2
        'lines [of] text = 3"""\n'  # 3
        "[a . 'b.c']  # [not.this]\n"  # 4
        "list = [ 1, # one ]\n"  # 5
        "  [2, 3],\n"  # 6
        "]\n"  # 7
        'inline = { x = "}", y.z = 1 }\n'  # 8
        "when = 1979-05-27 07:32:00\n"  # 9
        "[[many]]\n"  # 10
        "key = ''\n"  # 11
        "[[many]]\n"  # 12
        "[many.inner]\r\n"  # 13
        'last = """"quoted""""\r\n'  # 14
    )

    lines = key_lines(text)

    assert lines == {
        ("title",): 2,
        ("a",): 4,
        ("a", "b.c"): 4,
        ("a", "b.c", "list"): 5,
        ("a", "b.c", "list", 0): 5,
        ("a", "b.c", "list", 1): 6,
        ("a", "b.c", "list", 1, 0): 6,
        ("a", "b.c", "list", 1, 1): 6,
        ("a", "b.c", "inline"): 8,
        ("a", "b.c", "inline", "x"): 8,
        ("a", "b.c", "inline", "y"): 8,
        ("a", "b.c", "inline", "y", "z"): 8,
        ("a", "b.c", "when"): 9,
        ("many",): 10,
        ("many", 0): 10,
        ("many", 0, "key"): 11,
        ("many", 1): 12,
        ("many", 1, "inner"): 13,
        ("many", 1, "inner", "last"): 14,
    }
    assert set(lines) == set(paths(tomllib.loads(text)))
