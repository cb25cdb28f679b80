"""Every mistake in rabaska.toml is told with its line and the nearest right word."""

import re
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.errors import SettingsError
from rabaska.settings.project_file import load
from rabaska.settings.project_tables import Settings
from rabaska.settings.validation import keys, table_at


def refusal(folder, **wanted):
    with pytest.raises(SettingsError) as refused:
        load(folder, **wanted)
    return str(refused.value)


def complaint(folder, **wanted):
    """What is told about a file that may also be good; anything but SettingsError gets through."""
    try:
        load(folder, **wanted)
    except SettingsError as refused:
        return refused.what
    return ""


def blamed(told):
    """The (line, key) of each unknown key in what was told, one mistake or several."""
    alone = re.findall(r"unknown key `([\w-]+)` in rabaska.toml, line (\d+)", told)
    several = re.findall(r"line (\d+): unknown key `([\w-]+)`", told)
    return [(int(number), key) for key, number in alone] + [
        (int(number), key) for number, key in several
    ]


def test_an_unknown_key_is_told_with_its_line_and_the_nearest_word(write):
    folder = write('command = "x"\n\n[resources]\nwalltme = "3h"\n')

    assert refusal(folder) == (
        "unknown key `walltme` in rabaska.toml, line 4; did you mean `walltime`?"
    )


def test_the_file_is_named_as_seen_from_where_the_user_is(write):
    folder = write("nmae = 'x'\ncommand = 'x'\n")
    (folder / "src").mkdir()

    assert "in ../rabaska.toml, line 1" in refusal(folder / "src")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(write):
    folder = write(
        'comand = "python t.py"\n'
        "[resources]\n"
        'gpus = "two"\n'
        'walltime = "3 hurs"\n'
        "[chain]\n"
        "jobs = 0\n"
        'signal = "TREM"\n'
    )

    told = refusal(folder).splitlines()

    assert told == [
        "rabaska.toml has 5 mistakes",
        "  line 1: unknown key `comand`; did you mean `command`?",
        '  line 3: `gpus = "two"`; it must be a whole number',
        "  line 4: `walltime = \"3 hurs\"`; 'hurs' is not a unit of time; use s, m, h, d or w",
        "  line 6: `jobs = 0`; it must be at least 1",
        '  line 7: `signal = "TREM"`; did you mean `TERM`?',
    ]


def test_a_typo_does_not_hide_a_mistake_between_other_tables(write):
    folder = write(
        'command = "python t.py {dat}"\n[data.d]\npath = "data/digits"\n[code]\nexclud = []\n'
    )

    told = refusal(folder)

    assert "unknown key `exclud`" in told
    assert "unknown placeholder `{dat}`" in told


MISTAKES = {
    "a key under the wrong table": (
        "command = 'x'\n[chain]\nwalltime = '3h'\n",
        "unknown key `walltime` in rabaska.toml, line 3; it belongs in [resources]",
    ),
    "a cluster's key without its table": (
        "command = 'x'\n[cluster.beluga]\ngpus = 1\n",
        "line 3; it belongs in [cluster.beluga.resources]",
    ),
    "a top key below a table": (
        "[chain]\njobs = 2\ncommand = 'x'\n",
        "it belongs at the top of the file, before the first [table]",
    ),
    "an address that is a secret": (
        "command = 'x'\n[notify]\nwebhook = 'https://ntfy.sh/x'\n",
        "unknown key `webhook` in rabaska.toml, line 3; it belongs in your own settings.toml",
    ),
    "a key like no other": (
        "command = 'x'\n[code]\nzzz = 1\n",
        "line 3; the keys here are `exclude`, `include`",
    ),
    "no command": ("name = 'x'\n", "no `command` in rabaska.toml; write how you train"),
    "an empty command": ("command = ''\n", "line 1; it is empty"),
    "a command of no words": ("command = []\n", "line 1; it is empty"),
    "an open quotation": ('command = "echo \'a"\n', "line 1; a shell could not read it"),
    "a command that is a number": ("command = 3\n", "`command = 3` in rabaska.toml, line 1"),
    "an unknown placeholder": (
        "command = 'x {dat}'\n[data.d]\npath = 'd'\n",
        "unknown placeholder `{dat}` in rabaska.toml, line 1; did you mean `{data}`? "
        "the placeholders are `{data}`, `{output}`, `{checkpoint}`, `{checkpoints}`, `{data.d}`",
    ),
    "data without a dataset": (
        "command = 'x {data}'\n",
        "`{data}` without a dataset in rabaska.toml, line 1; add a [data.NAME] table",
    ),
    "a dataset that is not there": (
        "command = 'x {data.dogs}'\n[data.cats]\npath = 'd'\n",
        "unknown placeholder `{data.dogs}`",
    ),
    "an unknown placeholder among the words to resume": (
        "command = 'x'\nresume = '--from {chekpoint}'\n",
        "line 2; did you mean `{checkpoint}`?",
    ),
    "a dataset without a path": (
        "command = 'x'\n[data.d]\n",
        "no `path` in [data.d] in rabaska.toml, line 2",
    ),
    "a dataset with an empty path": (
        "command = 'x'\n[data.d]\npath = ''\n",
        "empty `path` in rabaska.toml, line 3",
    ),
    "a dataset in two places": (
        "command = 'x'\n[data.d]\npath = 'd'\nat = '/d'\n",
        "`path` and `at` in [data.d] in rabaska.toml, line 4; keep one; [cluster.NAME.data.NAME]",
    ),
    "a place on the cluster that is none": (
        "command = 'x'\n[data.d]\nat = 'data/d'\n",
        '`at = "data/d"` in rabaska.toml, line 3; it is a path on the cluster, which begins with',
    ),
    "an address of another kind": (
        "command = 'x'\n[data.d]\nurl = 'ftp://x.org/d'\n",
        "line 3; it must begin with `https://` or `http://`",
    ),
    "an address with a password": (
        "command = 'x'\n[data.d]\nurl = 'https://ada:pw@x.org/d'\n",
        "line 3; it holds a user name; `fetch` runs a command that can log in",
    ),
    "an address with a port that is none": (
        "command = 'x'\n[data.d]\nurl = 'https://x.org:one/d'\n",
        "line 3; Port could not be cast to integer value as 'one'",
    ),
    "a digest of another kind": (
        "command = 'x'\n[data.d]\nurl = 'https://x.org/d'\nsha256 = 'abc'\n",
        "line 4; it must be 64 hexadecimal digits",
    ),
    "a digest of nothing": (
        "command = 'x'\n[data.d]\nat = '/d'\nsha256 = '" + "0" * 64 + "'\n",
        "`sha256` without `url` in rabaska.toml, line 4",
    ),
    "more folders next to data on the cluster": (
        "command = 'x'\n[data.d]\nat = '/d'\nbeside = ['e']\n",
        "`beside` without `path` in rabaska.toml, line 4",
    ),
    "data on the nodes' own disks that is to be packed": (
        "command = 'x'\n[data.d]\nat = 'node:/d'\nas = 'files'\n",
        "`as` with `node:` in rabaska.toml, line 4",
    ),
    "a dataset of one cluster without a place": (
        "command = 'x'\n[cluster.here.data.d]\nfollow_links = true\n",
        "no `path` in [cluster.here.data.d] in rabaska.toml, line 2",
    ),
    "a dataset name with a space": (
        "command = 'x'\n[data.'a b']\npath = 'd'\n",
        "dataset name `a b`",
    ),
    "two datasets with one variable": (
        "command = 'x'\n[data.a-b]\npath = 'd'\n[data.a_b]\npath = 'e'\n",
        "line 4; `a-b` has the same variable, RABASKA_DATA_A_B",
    ),
    "a way that does not exist": (
        "command = 'x'\n[data.d]\npath = 'd'\nas = 'shard'\n",
        '`as = "shard"` in rabaska.toml, line 4; did you mean `shards`?',
    ),
    "a kind like no other": (
        "command = 'x'\n[environment]\nkind = 'docker'\n",
        "line 3; it can be `current`, `activate`, `virtualenv`",
    ),
    "text for a number": (
        "command = 'x'\n[resources]\ngpus = '1'\n",
        "line 3; it must be a whole number",
    ),
    "half a GPU": ("command = 'x'\n[resources]\ngpus = 0.5\n", "line 3; it must be a whole number"),
    "fewer GPUs than none": (
        "command = 'x'\n[resources]\ngpus = -1\n",
        "line 3; it must be at least 0",
    ),
    "too many nodes": (
        "command = 'x'\n[resources]\nnodes = 1000000\n",
        "it must be at most 100000",
    ),
    "a duration that is a number": (
        "command = 'x'\n[resources]\nwalltime = 3\n",
        "a duration in quotes",
    ),
    "no time at all": ("command = 'x'\n[resources]\nwalltime = '0s'\n", "longer than zero"),
    "a duration beyond measure": (
        "command = 'x'\n[resources]\nwalltime = '99999999999999d'\n",
        "no job lasts that long",
    ),
    "memory without a unit": (
        "command = 'x'\n[resources]\nmemory = '16'\n",
        "that is 16 bytes; add a unit",
    ),
    "memory that is a number": ("command = 'x'\n[resources]\nmemory = 16\n", "a size in quotes"),
    "memory beyond measure": (
        f"command = 'x'\n[resources]\nmemory = '{'9' * 400} GB'\n",
        "no computer has that much",
    ),
    "no jobs": (
        "command = 'x'\n[chain]\njobs = 0\n",
        "`jobs = 0` in rabaska.toml, line 3; it must be at least 1",
    ),
    "jobs by both of their names": (
        "command = 'x'\n[chain]\njobs = 2\nlinks = 3\n",
        "both `links` and `jobs` in rabaska.toml, line 4; they mean the same: keep `jobs`",
    ),
    "no jobs, by their older name": (
        "command = 'x'\n[cluster.beluga.chain]\nlinks = 0\n",
        "`jobs = 0` in rabaska.toml, line 3; it must be at least 1",
    ),
    "grace as long as the walltime": (
        "command = 'x'\n[resources]\nwalltime = '60s'\n[chain]\ngrace = '1m'\n",
        "`grace` of 60 s in rabaska.toml, line 5; `walltime` gives a job only 60 s in total",
    ),
    "a signal that cannot be caught": (
        "command = 'x'\n[chain]\nsignal = 'KILL'\n",
        "it can be `TERM`",
    ),
    "no checkpoint patterns": (
        "command = 'x'\n[checkpoints]\npatterns = []\n",
        "it must not be empty",
    ),
    "a number among patterns": (
        "command = 'x'\n[checkpoints]\npatterns = [\n  '*.pt',\n  3,\n]\n",
        "`patterns = 3` in rabaska.toml, line 5; it must be text in quotes",
    ),
    "output kept outside the project": (
        "command = 'x'\n[output]\nkeep = ['../runs']\n",
        "it must be a path inside the project folder",
    ),
    "an expression that is none": (
        "command = 'x'\n[progress]\npattern = 'step ('\n",
        "line 3; it is not a regular expression",
    ),
    "an expression that finds nothing": (
        "command = 'x'\n[progress]\npattern = 'step'\n",
        "it must name the number it finds",
    ),
    "a name that is no file name": ("name = 'a/b'\ncommand = 'x'\n", "it becomes a file name"),
    "a variable that no shell has": (
        "command = 'x'\n[environment]\nvariables = { 'A B' = '1' }\n",
        "'A B' cannot be the name of an environment variable",
    ),
    "an environment to activate that is nowhere": (
        "command = 'x'\n[environment]\nkind = 'activate'\n",
        "line 3; write the `path`",
    ),
    "a requirements file that is not there": (
        "command = 'x'\n[environment]\nrequirements = 'req.txt'\n",
        "no readable requirements file `req.txt` in rabaska.toml, line 3",
    ),
    "a requirements file of 300 letters": (
        f"command = 'x'\n[environment]\nrequirements = '{'r' * 300}'\n",
        "no readable requirements file",
    ),
    "a table that is a value": (
        "command = 'x'\nchain = 4\n",
        "`chain = 4` in rabaska.toml, line 2; it must be a table",
    ),
    "a table that is a list": (
        "command = 'x'\n[[data]]\npath = 'x'\n",
        "line 2; it must be a table",
    ),
    "a control character": (
        "command = 'x'\n[cluster.b]\naccount = \"a\\nb\"\n",
        "line 3; it must be a single line",
    ),
    "a NUL in the command": ('command = "a\\u0000b"\n', "NUL"),
    "a mistake about another cluster": (
        "command = 'x'\n[cluster.b]\nacount = 'a'\n",
        "unknown key `acount` in rabaska.toml, line 3; did you mean `account`?",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_is_told_in_plain_words(write, mistake):
    text, told = MISTAKES[mistake]
    folder = write(text)

    assert told in refusal(folder)


def test_text_that_is_not_toml_is_told_with_its_line(write):
    folder = write("command = 'x'\n\nname = digits\n")

    told = refusal(folder)

    assert told.startswith("rabaska.toml, line 3, is not valid TOML\n  because invalid value")


def test_a_table_or_a_key_that_is_there_twice_is_named(write):
    table = refusal(write("command = 'x'\n[resources]\ngpus = 1\n[resources]\ncores = 2\n"))
    key = refusal(write("command = 'x'\n[resources]\ngpus = 1\ngpus = 2\n"))

    assert table.startswith("rabaska.toml, line 4: the table [resources] is there twice")
    assert "put its lines under the first [resources]" in table
    assert key.startswith("rabaska.toml, line 4: this key is there already")


def test_toml_cut_short_is_told_with_its_last_line(write):
    folder = write("command = 'x'\n[data.d")

    assert "rabaska.toml, line 2, is not valid TOML" in refusal(folder)


def test_text_that_is_not_utf_8_is_told_with_its_line(write):
    folder = write(b"command = 'x'\nname = 'r\xe9seau'\n")

    assert refusal(folder).startswith("rabaska.toml, line 2, is not UTF-8\n  because it has the")


def test_utf_16_is_named(write, whole):
    folder = write(whole.encode("utf-16"))

    assert "rabaska.toml is written in UTF-16" in refusal(folder)


def test_a_file_nested_beyond_reason_is_refused(write):
    folder = write("command = " + "[" * 100_000)

    assert "nested too deeply" in refusal(folder)


def test_a_number_of_five_thousand_digits_is_refused(write):
    folder = write("command = 'x'\nname = " + "9" * 5000)

    assert "not valid TOML" in refusal(folder)


def test_a_variable_with_which_nothing_could_start_is_refused(write):
    folder = write(f'command = "x"\n[environment.variables]\nMUCH = "{"x" * 131_000}"\n')

    told = refusal(folder)

    assert "MUCH" in told
    assert "131,000 bytes" in told


def test_a_folder_called_rabaska_toml_is_refused(folder):
    (folder / "rabaska.toml").mkdir()

    assert "rabaska.toml cannot be read" in refusal(folder)


anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@anywhere
@given(st.data())
def test_a_misspelt_key_is_told_on_the_line_where_it_stands(write, whole, data):
    lines = whole.splitlines()
    starts = [number for number, line in enumerate(lines, 1) if re.match(r"\w+ = ", line)]
    number = data.draw(st.sampled_from(starts))
    key = lines[number - 1].split(" = ")[0]
    letter = data.draw(st.integers(0, len(key) - 1))
    wrong = key[:letter] + "_" + key[letter:]
    lines[number - 1] = lines[number - 1].replace(key, wrong, 1)

    told = refusal(write("\n".join(lines)))

    assert (number, wrong) in blamed(told)


@anywhere
@given(st.data())
def test_a_value_of_another_type_is_told_on_the_line_where_it_stands(write, whole, data):
    lines = whole.splitlines()
    starts = [number for number, line in enumerate(lines, 1) if re.match(r"\w+ = ", line)]
    number = data.draw(st.sampled_from(starts))
    key = lines[number - 1].split(" = ")[0]
    lines[number - 1] = f"{key} = 1979-05-27"

    told = refusal(write("\n".join(lines)))

    assert f'`{key} = "1979-05-27"`' in told
    assert f"line {number}" in told


scraps = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6) | st.sampled_from(
    [
        "[",
        "]",
        "{",
        "}",
        '"',
        "'",
        "\n",
        "=",
        ".",
        "[[x]]\n",
        "\n[data.x]\n",
        "3",
        "true",
        "a = 1\n",
    ]
)


@anywhere
@given(st.data())
def test_no_edit_of_a_good_file_ends_in_a_traceback_or_blames_another_line(write, whole, data):
    text = whole
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 12))
        text = text[:start] + data.draw(scraps) + text[end:]
    folder = write(text)

    told = complaint(folder, cluster="beluga", overrides={"chain.jobs": 3})

    lines = text.split("\n")
    assert all(1 <= int(number) <= len(lines) for number in re.findall(r"line (\d+)", told))
    assert all(key in lines[number - 1] for number, key in blamed(told))


@anywhere
@given(st.binary(max_size=80))
def test_no_bytes_end_in_a_traceback(write, raw):
    folder = write(raw)

    with pytest.raises(SettingsError):
        load(folder)


def test_the_test_file_uses_every_key_there_is(whole):
    written = tomllib.loads(whole)

    assert set(written) == set(keys(Settings))
    for table in (
        "environment",
        "resources",
        "chain",
        "checkpoints",
        "output",
        "code",
        "progress",
        "notify",
        "search",
    ):
        assert set(written[table]) == set(keys(table_at(Settings, (table,))))
    assert set(written["data"]["digits"]) == set(keys(table_at(Settings, ("data", "digits"))))
    assert set(written["cluster"]["beluga"]) == set(keys(table_at(Settings, ("cluster", "x"))))
