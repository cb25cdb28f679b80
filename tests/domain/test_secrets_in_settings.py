"""The copy of rabaska.toml that travels with the code holds no secret, however it is written."""

import json
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rabaska.domain.secrets import without_secrets

# As secrets are: long enough that nothing else in the file is the same by chance.
letters = st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\x7f")
words = st.text(letters, min_size=6, max_size=20).map(lambda text: f"s3cr{text}t")
names = st.sampled_from(
    ["DB_PASSWORD", '"HF_TOKEN"', "'WANDB_API_KEY'", '"API\\u005fKEY"', "db.PASS"]
)


def basic(text):
    return json.dumps(text, ensure_ascii=False)


def escaped(text):
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in text) + '"'


def spelled(text):
    """A text in each way that TOML knows."""
    ways = [
        basic(text),
        escaped(text),
        f'"""\n{basic(text)[1:-1]}"""',
        f'"""\\\n   {basic(text)[1:-1]}"""',
    ]
    if "'" not in text:
        ways += [f"'{text}'", f"'''{text}'''", f"'''\n{text}'''"]
    return st.sampled_from([(way, text) for way in ways])


scalars = st.one_of(
    words.flatmap(spelled),
    st.integers(10**6, 2**62).map(lambda number: (str(number), str(number))),
    st.integers(10**6, 2**62).map(lambda number: (f"{number:_}", str(number))),
    st.integers(10**6, 2**62).map(lambda number: (hex(number), str(number))),
    st.floats(10**6, 10**12).map(lambda number: (repr(number), repr(number))),
    st.datetimes().map(lambda day: (day.isoformat(), day.isoformat())),
    st.datetimes().map(lambda day: (day.isoformat(" "), day.isoformat())),
    st.dates().map(lambda day: (day.isoformat(), day.isoformat())),
    st.times().map(lambda time: (time.isoformat(), time.isoformat())),
)
values = scalars | st.tuples(
    st.sampled_from(["[{}]", "[\n  {}, # one\n]", "[[7102, 7103], [{}]]", "{{ a = {} }}",
                     "{{ a.b = [{}] }}", "[{{ a = 7102 }}, {{ b = {} }}]"]),
    scalars,
).map(lambda both: (both[0].format(both[1][0]), both[1][1]))  # fmt: skip
around = st.sampled_from([
    'command = "python train.py"\n', "note = \"it's\"\n", "note = '\"'\n",
    'note = """a "quoted" \'one\'"""\n',
    "# don't\n", "note = '''\nit's'''\n", 'note = "\\""\n',
    "[data.a]\npath = 'x' # \"\n", "[[list]]\nx = 1\n",
    "\r\n", "a.b = 1\r\n", "note = '''x'''''\n",
])  # fmt: skip
tables = st.sampled_from(["[environment.variables]\n", "", "[[several]]\n", '["odd \\" table"]\n'])
comments = st.sampled_from(["", " # it's mine", ' # = "'])


@given(around, tables, names, values, comments, around.filter(lambda text: text[0] != "["))
@example('note = "it\'s"\n', "", "DB_PASSWORD", ("'hunter2'", "hunter2"), "", "")
@example("", "", "DB_PASSWORD", ("8675309", "8675309"), "", "")
def test_no_secret_is_left_whatever_its_type_and_what_is_around_it(
    before, table, name, value, comment, after
):
    written, secret = value
    text = f"{before}{table}{name} = {written}{comment}\n[last]\n{after}"
    tomllib.loads(text)

    copy = without_secrets(text.encode())

    assert copy is not None
    assert secret.encode() not in copy
    assert written.encode() not in copy
    assert tomllib.loads(copy.decode())["last"] == tomllib.loads(text)["last"]


@given(st.sampled_from(["1", "true", "7.5", '"x"', '"***"', '"DB"', "''"]))
def test_what_cannot_be_told_from_the_rest_is_not_sent(written):
    text = f"gpus = 1\nflag = true\nrate = 7.5\nname = 'x'\nDB_PASSWORD = {written}\n"
    secret = str(tomllib.loads(text)["DB_PASSWORD"])

    copy = without_secrets(text.encode())

    assert copy is None if secret else copy == text.encode()


def test_a_secret_that_is_written_twice_in_different_ways_is_found():
    assert without_secrets(b'A_TOKEN = "hunter2"\nnote = "h\\u0075nter2"\n') is None


@pytest.mark.parametrize(
    "comment",
    ["# DB_PASS = 'hunter2'", "# old token: hunter2", '#HF_TOKEN="hunter2', "# https://ada:hunter2@a.b"],
)  # fmt: skip
def test_a_comment_that_may_hold_a_secret_is_emptied(comment):
    copy = without_secrets(f"gpus = 1 {comment}\n# this stays\n".encode())

    assert copy == b"gpus = 1 #\n# this stays\n"


def test_a_file_without_secrets_is_copied_as_it_is():
    text = (
        b'\xef\xbb\xbfcommand = "train.py --key=1"\r\n[environment]\r\nsecrets = ["HF_TOKEN"]\r\n'
    )

    assert without_secrets(text) == text


@pytest.mark.parametrize("text", [b"a = ", b"\xff\xfea", b'DB_PASS = "hunter2', b"a = 1\na = 2"])
def test_what_is_not_toml_is_not_sent(text):
    assert without_secrets(text) is None


def test_all_else_stays_as_it_is():
    text = b'''command = "python train.py --key=1"
[environment]
secrets = ["HF_TOKEN"]
variables = { DB_PASS = 'hunter2', HF_HOME = "/cache" }
index = ["https://ada:hunter2@example.org", "https://example.org"]
[environment.more]
"HF_TOKEN" = "a\\"b"  # mine
WANDB_API_KEY = """
long"""
URL = "https://ada:hunter2@example.org"
OMP = "1"
'''

    assert (
        without_secrets(text)
        == b"""command = "python train.py --key=1"
[environment]
secrets = ["HF_TOKEN"]
variables = { DB_PASS = "***", HF_HOME = "/cache" }
index = ["***", "https://example.org"]
[environment.more]
"HF_TOKEN" = "***"  # mine
WANDB_API_KEY = "***"
URL = "***"
OMP = "1"
"""
    )
