"""Lists of packages other than a requirements file: uv.lock and pyproject.toml."""

import contextlib
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain import markers
from rabaska.domain.package_lists import as_requirements
from rabaska.domain.uv_lock import UnusableList

# In the words of `uv lock` 0.13.8, with other packages; `uv export` gave the same conditions.
LOCK = """\
version = 1
revision = 5
requires-python = ">=3.9"

[[package]]
name = "canoe"
version = "1.0"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["python_full_version < '3.10'"]
wheels = [{ url = "https://files.example/canoe-1.0-py3-none-any.whl", hash = "sha256:c10" }]

[[package]]
name = "canoe"
version = "2.0"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["python_full_version >= '3.10'"]
dependencies = [{ name = "keel", extra = ["lead"] }]
sdist = { url = "https://files.example/canoe-2.0.tar.gz", hash = "sha256:c20s" }
wheels = [{ url = "https://files.example/canoe-2.0-py3-none-any.whl", hash = "sha256:c20w" }]

[[package]]
name = "demo"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "canoe", version = "1.0", source = { registry = "https://pypi.org/simple" }, marker = "python_full_version < '3.10'" },
    { name = "canoe", version = "2.0", source = { registry = "https://pypi.org/simple" }, marker = "python_full_version >= '3.10'" },
    { name = "porthole", marker = "sys_platform == 'win32'" },
    { name = "torch", marker = "extra == 'extra-4-demo-cpu'" },
]

[package.optional-dependencies]
cpu = [{ name = "torch" }]

[package.dev-dependencies]
dev = [{ name = "sextant" }]

[[package]]
name = "keel"
version = "3.0"
source = { registry = "https://pypi.org/simple" }
wheels = [{ url = "https://files.example/keel-3.0-py3-none-any.whl", hash = "sha256:k30" }]

[package.optional-dependencies]
lead = [{ name = "lead", marker = "sys_platform == 'linux'" }]

[[package]]
name = "lead"
version = "4.0"
source = { registry = "https://pypi.org/simple" }
dependencies = [{ name = "keel" }]
wheels = [{ url = "https://files.example/lead-4.0-py3-none-any.whl", hash = "sha256:l40" }]

[[package]]
name = "porthole"
version = "1.0"
source = { registry = "https://pypi.org/simple" }
wheels = [{ url = "https://files.example/porthole-1.0-py3-none-any.whl", hash = "sha256:p10" }]

[[package]]
name = "sextant"
version = "1.0"
source = { registry = "https://pypi.org/simple" }
wheels = [{ url = "https://files.example/sextant-1.0-py3-none-any.whl", hash = "sha256:s10" }]

[[package]]
name = "torch"
version = "2.5.1+cpu"
source = { registry = "https://download.pytorch.org/whl/cpu" }
wheels = [{ url = "https://files.example/torch-2.5.1+cpu-cp311.whl", hash = "sha256:t251" }]
"""  # noqa: E501


def plain(text):
    return re.sub(r" --hash=\S+", "", text).splitlines()


def test_a_lock_gives_exact_versions_under_their_conditions():
    assert plain(as_requirements("uv.lock", LOCK)) == [
        "canoe==1.0 ; (python_full_version < '3.10')",
        "canoe==2.0 ; (python_full_version >= '3.10')",
        "keel==3.0 ; (python_full_version >= '3.10')",
        "lead==4.0 ; (python_full_version >= '3.10') and (sys_platform == 'linux')",
        "porthole==1.0 ; (sys_platform == 'win32')",
    ]


def test_every_file_of_a_locked_package_is_allowed_and_no_other():
    (line,) = [line for line in as_requirements("uv.lock", LOCK).splitlines() if "canoe==2" in line]

    assert line.endswith(" --hash=sha256:c20s --hash=sha256:c20w")


def test_extras_and_groups_of_the_project_are_added_with_their_index():
    lines = plain(as_requirements("uv.lock", LOCK, ["cpu", "dev"]))

    assert lines[0] == "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert {"sextant==1.0", "torch==2.5.1+cpu"} <= set(lines)


def test_an_unknown_extra_is_named_with_those_there_are():
    with pytest.raises(UnusableList, match="no optional list or group `gpu`; it has: cpu, dev"):
        as_requirements("uv.lock", LOCK, ["gpu"])


def test_what_comes_from_git_is_taken_at_its_commit_and_costs_the_hashes():
    git = 'source = { git = "https://code.example/keel?rev=main#0a1b2c" }'
    lock = LOCK.replace(
        'name = "keel"\nversion = "3.0"\nsource = { registry = "https://pypi.org/simple" }',
        f'name = "keel"\nversion = "3.0"\n{git}',
    )

    text = as_requirements("uv.lock", lock)

    assert "keel @ git+https://code.example/keel@0a1b2c ;" in text
    assert "--hash" not in text


@pytest.mark.parametrize(
    ("lock", "why"),
    [
        ("version = 2", "only 1 is known"),
        ("version = 1", "names no project"),
        ("=", "not TOML"),
        ("version = 1\n[[package]]\nsource = { virtual = '.' }", "not as uv writes it"),
        ("version = 1\npackage = [{ name = 'a', source = 'x' }]", "not as uv writes it"),
        (LOCK.replace('name = "keel"\nversion', 'name = "kiel"\nversion'), "no package `keel`"),
    ],
)
def test_a_lock_that_cannot_be_read_is_refused_with_the_reason(lock, why):
    with pytest.raises(UnusableList, match=why):
        as_requirements("uv.lock", lock)


PYPROJECT = """\
[project]
name = "demo"
dependencies = ["torch>=2", "tqdm"]
[project.optional-dependencies]
plots = ["matplotlib"]
[dependency-groups]
train = ["wandb", {include-group = "base"}]
base = ["numpy<3"]
"""


def test_a_pyproject_lists_what_it_depends_on():
    assert as_requirements("pyproject.toml", PYPROJECT) == "torch>=2\ntqdm\n"
    assert as_requirements("sub/pyproject.toml", PYPROJECT, ["plots", "train"]) == (
        "torch>=2\ntqdm\nmatplotlib\nwandb\nnumpy<3\n"
    )


def test_a_list_may_name_others_by_the_projects_own_name():
    own = PYPROJECT.replace("plots =", 'all = ["Demo[plots, train]", "rich"]\nplots =')

    assert as_requirements("pyproject.toml", own, ["all"]) == (
        "torch>=2\ntqdm\nmatplotlib\nwandb\nnumpy<3\nrich\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dependencies = []\n[dependency-groups]\nA_b = [{include-group = 'A_b'}]", "itself"),
        ("dependencies = 'numpy'\n[dependency-groups]\na-b = []", "is not a list"),
    ],
)
def test_a_pyproject_that_cannot_be_read_is_refused_with_the_reason(text, why):
    with pytest.raises(UnusableList, match=why):
        as_requirements("pyproject.toml", f"[project]\nname = 'demo'\n{text}\n", ["A_b"])


def test_poetrys_ranges_are_those_of_pip():
    poetry = """\
[tool.poetry.dependencies]
python = "^3.9"
torch = "^2.1"
tqdm = "~4.60.1"
small = "^0.3.2"
plain = "1.2"
bounded = ">=1,<2"
any = "*"
table = {version = "^1", extras = ["a", "b"], markers = "sys_platform == 'linux'"}
"""

    assert as_requirements("pyproject.toml", poetry).splitlines() == [
        "torch>=2.1,<3",
        "tqdm>=4.60.1,<4.61",
        "small>=0.3.2,<0.4",
        "plain==1.2",
        "bounded>=1,<2",
        "any",
        "table[a,b]>=1,<2 ; sys_platform == 'linux'",
    ]


def test_a_pyproject_without_dependencies_is_refused():
    with pytest.raises(UnusableList, match="no `dependencies`"):
        as_requirements("pyproject.toml", "[project]\nname = 'x'\n")


def test_a_requirements_file_stays_as_it_is():
    assert as_requirements("requirements.txt", "numpy # x\n") == "numpy # x\n"


OLD = markers.of_python("3.9.18", "x86_64")


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("python_version < '3.10'", True),
        ("python_full_version == '3.9.*'", True),
        ("python_full_version == '3.1.*'", False),
        ("python_version >= '3.10' or (sys_platform == 'linux' and os_name == 'posix')", True),
        ("platform_machine == 'aarch64'", False),
        ("python_version not in '3.8, 3.9'", False),
        ("python_version ~= '3.8'", True),
        ("'linux' in sys_platform", True),
        ("extra == 'dev'", False),
    ],
)
def test_markers_are_decided_for_the_python_of_the_cluster(marker, holds):
    assert markers.holds(marker, OLD) is holds


def test_only_the_lines_that_count_there_are_fetched():
    text = as_requirements("uv.lock", LOCK)

    assert plain(markers.applicable(text, OLD)) == ["canoe==1.0"]
    assert "--hash=sha256:c10" in markers.applicable(text, OLD)


def test_a_marker_that_nobody_knows_is_left_to_pip():
    assert markers.applicable("a ; moon == 'full'\nb\n", OLD) == "a ; moon == 'full'\nb\n"


@given(
    st.tuples(st.sampled_from([2, 3]), st.integers(0, 20)),
    st.sampled_from(["<", "<=", "==", "!=", ">", ">="]),
)
def test_versions_are_compared_as_numbers(version, sign):
    spelled = "{}.{}".format(*version)
    here = sys.version_info[:2]
    expected = eval(f"{here!r} {sign} {version!r}")
    facts = markers.of_python("{}.{}.0".format(*here), "x86_64")

    assert markers.holds(f"python_version {sign} '{spelled}'", facts) is expected


VALUES = st.sampled_from(["python_version", "os_name", "'x'", "'3.8'", "'3.*'", "nobody"])
SIGNS = st.sampled_from(["and", "or", "in", "not in", "(", ")", "==", "<=", "~=", "==="])


@given(st.text(max_size=40) | st.tuples(VALUES, SIGNS, VALUES).map(" ".join))
def test_any_text_is_decided_or_unknown(text):
    with contextlib.suppress(markers.UnknownMarker):
        assert markers.holds(text, OLD) in (True, False)
