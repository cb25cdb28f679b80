"""How values reach a program: options, overrides, variables, a file; and once more by `run`."""

import json

import pytest

from rabaska.errors import SettingsError
from rabaska.node.search import values_file

REPORTS = 'print("epoch 1 score", lr * 10 + seed, flush=True)\n'
# A program for each way, and what rabaska.toml says of it. All report lr * 10 + seed.
WAYS = {
    "options": (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--lr", type=float)\nparser.add_argument("--seed", type=int)\n'
        "o = parser.parse_args()\nlr, seed = o.lr, o.seed or 0\n",
        "python train.py",
        "",
    ),
    "overrides": (
        "import sys\ngiven = dict(one.split('=') for one in sys.argv[1:])\n"
        "lr, seed = float(given['lr']), int(given.get('seed', 0))\n",
        "python train.py seed=0",
        'values_as = "overrides"',
    ),
    "environment": (
        'import os\nlr, seed = float(os.environ["LR"]), int(os.environ.get("SEED", 0))\n',
        "python train.py",
        'values_as = "environment"',
    ),
    "file": (
        "import sys\ntext = open(sys.argv[sys.argv.index('--config') + 1]).read()\n"
        "given = dict(line.split('#')[0].split(': ') for line in text.splitlines())\n"
        "lr, seed = float(given['lr']), int(given['seed'])\nassert given['kind'] == '\"a\" '\n",
        "python train.py --config train.yaml",
        'values_as = "file"',
    ),
}


@pytest.fixture(params=WAYS)
def project(request, laptop):
    program, command, how = WAYS[request.param]
    (laptop.project / "train.py").write_text(program + REPORTS)
    (laptop.project / "train.yaml").write_text('lr: 1e-3 # rate\nseed: 0\nkind: "a" # of it\n')
    (laptop.project / "rabaska.toml").write_text(
        f'name = "tiny"\ncommand = "{command}"\n[resources]\nwalltime = "60s"\n'
        f'[search]\nmetric = "score"\ngoal = "max"\nmethod = "grid"\nat_once = 2\n{how}\n'
        "[search.space]\nlr = [0.5, 1e-05]\n"
    )
    return laptop


@pytest.mark.slow
def test_values_reach_the_program_in_each_way_and_run_gives_them_again(project):
    ended = json.loads(project.types("search", "run", "--wait", "--no-doctor", "--json"))

    project.types("run", "--trial", "2", "--no-doctor", "--wait")

    assert [(one["value"], one["values"]["lr"]) for one in ended["trials"]] == [
        (5.0, 0.5), (0.0001, 1e-05),
    ]  # fmt: skip
    assert "score 0.0001" in project.types("logs")


BASE = """\
model:
  depth: 3   # layers
  act: "re#lu"
optimizer:
    lr: 1e-3 # rate
    betas: [0.9, 0.99]
seed: 7
text: |
  lr: 5
list:
  - lr: 4
"""


def test_a_yaml_file_gets_other_values_and_is_otherwise_as_it_was():
    values = {"model.depth": 4, "optimizer.lr": 1e-05, "model.act": "gelu", "seed": True}

    changed = values_file.changed("a.yaml", BASE, values)

    assert changed == (
        BASE.replace("depth: 3", "depth: 4")
        .replace("lr: 1e-3", "lr: 1.0e-05")
        .replace('"re#lu"', '"gelu"')
        .replace("seed: 7", "seed: true")
    )


def test_a_json_file_gets_other_values_below_others_too():
    changed = values_file.changed("a.json", '{"a": {"lr": 1}, "b": 2}', {"a.lr": 0.5})

    assert json.loads(changed) == {"a": {"lr": 0.5}, "b": 2}


@pytest.mark.parametrize("name", ["lr", "optimizer.betas", "model", "list", "optimizer.rate"])
def test_a_name_that_a_file_does_not_have_as_one_value_is_told(name):
    with pytest.raises(values_file.NotThere) as refusal:
        values_file.changed("a.yaml", BASE, {name: 1})

    assert refusal.value.known == ["model.depth", "model.act", "optimizer.lr", "seed"]


def test_values_alone_are_numbers_to_json_and_to_yaml():
    text = values_file.alone({"lr": 1e-05, "kind": "a", "big": 1e300, "on": True})

    assert json.loads(text) == {"lr": 1e-05, "kind": "a", "big": 1e300, "on": True}
    assert "1.0e-05" in text
    assert "1.0e+300" in text


@pytest.mark.parametrize("project", ["file"], indirect=True)
def test_a_file_without_the_name_is_refused_before_anything_is_sent(project):
    toml = project.project / "rabaska.toml"
    toml.write_text(toml.read_text().replace("lr = [", "lrs = ["))

    with pytest.raises(SettingsError) as refusal:
        project.types("search", "run")

    assert "train.yaml has no single value called `lrs`" in str(refusal.value)
    assert "did you mean `lr`?" in str(refusal.value)
