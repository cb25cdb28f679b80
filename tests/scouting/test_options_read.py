"""How options are read from the ways scripts declare them."""

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from rabaska.scouting.script_options import FLAG, POSITIONAL, VALUE, options
from rabaska.scouting.source import argument, fixed_folder, is_inside, path_of, read


def options_of(tmp_path, script):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script))
    return {option.spelled: option for option in options(read(path, "train.py"))}


def test_argparse_options_have_their_kind_default_and_line(tmp_path):
    found = options_of(
        tmp_path,
        """\
        import argparse
        DATA = "data/cats"
        p = argparse.ArgumentParser()
        p.add_argument("folder")
        p.add_argument("-d", "--data", default=DATA)
        p.add_argument("--epochs", type=int, default=3)
        p.add_argument("--resume", action="store_true")
        p.add_argument("--fast", action=argparse.BooleanOptionalAction)
        p.add_argument("--arch", choices=["a", "b"], required=True)
        p.add_argument("--version", action="version")
        """,
    )

    assert [option.kind for option in found.values()] == [
        POSITIONAL, VALUE, VALUE, FLAG, FLAG, VALUE,
    ]  # fmt: skip
    assert found["--data"].default == "data/cats"
    assert str(found["--data"].place) == "train.py, line 5: --data"
    assert found["--epochs"].number
    assert found["--arch"].choices == ("a", "b")
    assert [option.spelled for option in found.values() if option.required] == ["folder", "--arch"]


def test_a_truth_value_given_as_a_word_is_known(tmp_path):
    found = options_of(tmp_path, 'p.add_argument("--resume", type=str2bool, default=False)')

    assert found["--resume"].truth


def test_defaults_are_followed_through_paths_and_the_environment(tmp_path):
    found = options_of(
        tmp_path,
        """\
        p.add_argument("--a", default=os.path.join("x", "y"))
        p.add_argument("--b", default=Path("x") / "z")
        p.add_argument("--c", default=os.environ.get("DATA", "here"))
        p.add_argument("--d", default=somewhere())
        """,
    )

    assert [option.default for option in found.values()] == ["x/y", "x/z", "here", ""]


def test_tyro_dataclasses_become_options(tmp_path):
    found = options_of(
        tmp_path,
        """\
        @dataclass
        class Args:
            data_dir: str
            epochs: int = 3
            resume: bool = False
        tyro.cli(Args)
        """,
    )

    assert [(each.spelled, each.kind, each.required) for each in found.values()] == [
        ("--data_dir", VALUE, True), ("--epochs", VALUE, False), ("--resume", FLAG, False),
    ]  # fmt: skip


def path_in(tmp_path, script):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script))
    source = read(path, "train.py")
    call = next(call for call in source.calls() if getattr(call.func, "id", "") == "save")
    return path_of(argument(call, "path", 0), source)


def test_a_path_is_followed_through_variables_and_formats(tmp_path):
    spelled = [
        'save("a/b.pt")',
        'save(f"a/epoch-{n:03d}.pt")',
        'save("a/epoch-%03d.pt" % n)',
        'save("{}/epoch-{}.pt".format(folder, n))',
        'name = "b.pt"\nsave(os.path.join("a", name))',
        'save(Path("a") / "b.pt")',
        'def keep(state, name="b.pt"):\n    save(name)',
        "save(unknown)",
    ]

    assert [path_in(tmp_path, each) for each in spelled] == [
        "a/b.pt", "a/epoch-*.pt", "a/epoch-*.pt", "*/epoch-*.pt", "a/b.pt", "a/b.pt", "b.pt", "*",
    ]  # fmt: skip


def test_a_variable_made_of_itself_ends(tmp_path):
    assert path_in(tmp_path, 'x = x + "a"\nsave(x)').startswith("*")


@given(st.text(alphabet="ab*./~", max_size=12))
def test_what_is_known_of_a_folder_is_a_prefix_of_its_path(path):
    folder = fixed_folder(path)

    assert "*" not in folder
    assert path.removeprefix("./").startswith(folder)
    if is_inside(path):
        assert not path.startswith(("/", "~"))
