"""What an option is for, by its name, its default, its help and how the script uses it."""

import pytest

from rabaska.scouting.option_roles import (
    CHECKPOINTS,
    DATA,
    LOGS,
    OUTPUT,
    RESUME,
    SAVE,
    Usage,
    role_of,
    roles,
)
from rabaska.scouting.script_options import FLAG, POSITIONAL, VALUE, Option
from rabaska.scouting.source import SourceLine

HERE = SourceLine("train.py", 1)


def option(spelled, kind=VALUE, **more):
    return Option(spelled, kind, HERE, **more)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (option("--data"), DATA),
        (option("--data-dir"), DATA),
        (option("--dataroot"), DATA),
        (option("--train_dir"), DATA),
        (option("folder", POSITIONAL), ""),
        (option("data", POSITIONAL), DATA),
        (option("--dataset", default="cifar10"), ""),
        (option("--dataset", default="./cifar10"), DATA),
        (option("--dataset", help="cifar10 | lsun | folder | fake"), ""),
        (option("--dataset", help="path of the training images"), DATA),
        (option("--data", choices=("mnist", "svhn")), ""),
        (option("--train", FLAG), ""),
        (option("--output"), OUTPUT),
        (option("--outdir"), OUTPUT),
        (option("--save-model-dir"), OUTPUT),
        (option("--model", default="resnet18"), ""),
        (option("--model-dir", default="/tmp/model"), OUTPUT),
        (option("--checkpoint-dir"), CHECKPOINTS),
        (option("--ckpt_folder"), CHECKPOINTS),
        (option("--log-dir"), LOGS),
        (option("--log-interval", number=True), ""),
        (option("--save-every", number=True), ""),
        (option("--resume"), RESUME),
        (option("--resume", FLAG), RESUME),
        (option("--resume_from_checkpoint"), RESUME),
        (option("--load-checkpoint"), RESUME),
        (option("--ckpt"), RESUME),
        (option("--checkpoint", default="ckpt.pt"), CHECKPOINTS),
        (option("--save-model", FLAG), SAVE),
        (option("--pretrained", FLAG), ""),
        (option("trainer.default_root_dir"), OUTPUT),
        (option("--epochs", number=True), ""),
    ],
)
def test_the_role_of_an_option(given, expected):
    assert role_of(given, Usage()) == expected


def test_a_checkpoint_that_is_loaded_is_resumed_from_and_one_that_is_saved_is_not():
    given = option("--checkpoint", default="ckpt.pt")

    loaded = role_of(given, Usage(loaded_from=frozenset({"checkpoint"})))
    saved = role_of(given, Usage(saved_to=frozenset({"checkpoint"})))

    assert (loaded, saved) == (RESUME, CHECKPOINTS)


def test_the_model_that_is_fine_tuned_is_not_the_output():
    given = option("--model-path", default="bert-base")

    assert role_of(given, Usage(loaded_from=frozenset({"model_path"}))) == ""
    assert role_of(given, Usage(saved_to=frozenset({"model_path"}))) == OUTPUT


def test_only_one_option_is_resumed_from_and_the_plainest_name_wins():
    found = roles([option("--load"), option("--resume"), option("--ckpt")], Usage())

    assert [role.option.spelled for role in found if role.what == RESUME] == ["--resume"]
