"""Which checkpoint a program continues from."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rabaska.node.checkpoints import newest_checkpoint
from rabaska.node.checkpoints.order import Candidate
from rabaska.node.checkpoints.unreadable import Unreadable

NOW = 1_700_000_000 * 10**9
SECOND = 10**9


def save(folder: Path, name: str, *, at: float = 0.0, damaged: bool = False) -> Path:
    """A checkpoint that was written `at` seconds after the beginning."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        np.savez(stream, weights=np.arange(100), step=np.array(at))
    if damaged:
        os.truncate(path, 200)
    moment = NOW + int(at * SECOND)
    os.utime(path, ns=(moment, moment))
    return path


def chosen(folder: Path, *patterns: str) -> str | None:
    found = newest_checkpoint.newest_valid(str(folder), list(patterns))
    return found.path if found else None


def test_the_newest_checkpoint_is_found_at_any_depth(tmp_path: Path) -> None:
    save(tmp_path, "checkpoints/step-1.npz", at=100)
    newest = save(tmp_path, "output/version_0/deep/step-2.npz", at=200)

    found = newest_checkpoint.newest_valid(str(tmp_path), ["*.npz"])

    assert found == Candidate(
        "output/version_0/deep/step-2.npz", newest.stat().st_size, NOW + 200 * SECOND
    )


def test_nothing_is_found_where_nothing_was_saved(tmp_path: Path) -> None:
    assert newest_checkpoint.newest_valid(str(tmp_path), ["*.npz"]) is None
    assert newest_checkpoint.newest_valid(str(tmp_path / "absent"), ["*.npz"]) is None


def test_a_damaged_newest_one_is_set_aside_and_the_one_before_it_used(tmp_path: Path) -> None:
    save(tmp_path, "checkpoints/step-1.npz", at=100)
    damaged = save(tmp_path, "checkpoints/step-2.npz", at=200, damaged=True)
    content = damaged.read_bytes()
    told: list[tuple[str, str]] = []

    found = newest_checkpoint.newest_valid(
        str(tmp_path), ["*.npz"], report=lambda path, why: told.append((path, why))
    )

    assert found is not None
    assert found.path == "checkpoints/step-1.npz"
    assert [path for path, _ in told] == ["checkpoints/step-2.npz"]
    assert "zip" in told[0][1]
    assert not damaged.exists()
    assert Path(f"{damaged}.damaged").read_bytes() == content


def test_a_damaged_one_is_reported_only_once(tmp_path: Path) -> None:
    save(tmp_path, "step-2.npz", damaged=True)
    told: list[str] = []

    for _ in range(3):
        newest_checkpoint.newest_valid(
            str(tmp_path), [], report=lambda path, why: told.append(path)
        )

    assert told == ["step-2.npz"]


def test_setting_aside_never_replaces_what_was_set_aside_before(tmp_path: Path) -> None:
    for _ in range(3):
        save(tmp_path, "last.npz", damaged=True)
        assert chosen(tmp_path, "*.npz*") is None

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "last.npz.2.damaged",
        "last.npz.3.damaged",
        "last.npz.damaged",
    ]


def test_looking_without_setting_aside_changes_nothing(tmp_path: Path) -> None:
    save(tmp_path, "step-1.npz", at=100)
    save(tmp_path, "step-2.npz", at=200, damaged=True)

    found = newest_checkpoint.newest_valid(str(tmp_path), ["*.npz"], set_aside=False)

    assert found is not None
    assert found.path == "step-1.npz"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-1.npz", "step-2.npz"]


def test_a_changed_bit_is_found_because_the_deep_check_is_the_rule(tmp_path: Path) -> None:
    save(tmp_path, "step-1.npz", at=100)
    flipped = save(tmp_path, "step-2.npz", at=200)
    content = bytearray(flipped.read_bytes())
    content[len(content) // 3] ^= 16
    flipped.write_bytes(bytes(content))

    assert chosen(tmp_path, "*.npz") == "step-1.npz"


@pytest.mark.parametrize("ending", [".partial", ".tmp", ".damaged"])
def test_unfinished_files_are_never_candidates(tmp_path: Path, ending: str) -> None:
    save(tmp_path, f"step-2.npz{ending}")

    assert chosen(tmp_path, "*") is None
    assert (tmp_path / f"step-2.npz{ending}").exists()


def test_a_newest_file_that_cannot_be_read_is_not_passed_over(ordinary_folder: Path) -> None:
    save(ordinary_folder, "output/step-1.npz", at=100)
    save(ordinary_folder, "output/step-2.npz", at=200).chmod(0)
    told: list[str] = []

    with pytest.raises(Unreadable, match=r"output/step-2.npz.*Permission.*EACCES"):
        newest_checkpoint.newest_valid(
            str(ordinary_folder), ["*.npz"], report=lambda path, why: told.append(path)
        )

    assert (ordinary_folder / "output/step-2.npz").exists()
    assert told == []


def test_an_older_file_that_cannot_be_read_is_no_hindrance(ordinary_folder: Path) -> None:
    save(ordinary_folder, "output/step-1.npz", at=100).chmod(0)
    save(ordinary_folder, "output/step-2.npz", at=200)

    assert chosen(ordinary_folder, "*.npz") == "output/step-2.npz"


@pytest.mark.parametrize(
    ("locked", "mode"),
    [
        ("output/ckpts", 0),
        ("output/ckpts", 0o400),
        ("output", 0),
        ("output/checkpoint-500", 0),
        ("output/checkpoint-500/global_step500", 0),
        ("output/ckpt-000000009", 0o400),
    ],
)
def test_a_folder_that_cannot_be_read_may_hold_the_newest(
    ordinary_folder: Path, locked: str, mode: int
) -> None:
    save(ordinary_folder, "checkpoints/step-1.npz", at=100)
    save_like_hugging_face(ordinary_folder / "output", 500)
    save(ordinary_folder, f"{locked}/step-2.npz", at=200)
    save(ordinary_folder, f"{locked}/COMMIT.json", at=200)
    (ordinary_folder / locked).chmod(mode)

    try:
        with pytest.raises(Unreadable, match=locked):
            newest_checkpoint.newest_valid(str(ordinary_folder), [])
        assert newest_checkpoint.newest_valid(str(ordinary_folder), [], set_aside=False) is not None
    finally:
        (ordinary_folder / locked).chmod(0o700)


def test_dangling_links_and_pipes_are_passed_over(tmp_path: Path) -> None:
    save(tmp_path, "step-1.npz", at=100)
    (tmp_path / "last.npz").symlink_to("gone.npz")
    os.mkfifo(tmp_path / "pipe.npz")

    assert chosen(tmp_path, "*.npz") == "step-1.npz"


def test_names_that_are_not_text_are_found(tmp_path: Path) -> None:
    name = os.fsdecode(b"mod\xe8le-3.npz")
    save(tmp_path, name)

    assert chosen(tmp_path, "*.npz") == name


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("output/a/last.pt", "*.pt", True),
        ("output/a/last.pt", "last.*", True),
        ("output/a/last.pt", "output/a/*.pt", True),
        ("output/a/last.pt", "a/*.pt", True),
        ("output/a/last.pt", "**/last.pt", True),
        ("output/last.pt", "**/last.pt", True),
        ("output/a/last.pt", "b/*.pt", False),
        ("output/a/last.pt", "*.ckpt", False),
        ("output/a/last.pt", "a", False),
    ],
)
def test_a_pattern_fits_a_name_or_a_path(path: str, pattern: str, fits: bool) -> None:
    assert newest_checkpoint.matches(path, [pattern]) is fits


SAVES_FOR_EVER = """
import os, sys
import numpy as np

step = int(sys.argv[2])
while True:
    step += 1
    weights = np.full(200_000, step)
    np.savez(os.path.join(sys.argv[1], "step-{}.npz".format(step)), weights=weights)
    print(step, flush=True)
"""


@pytest.mark.slow
def test_whatever_moment_a_program_is_killed_at_its_last_whole_save_is_found(
    tmp_path: Path,
) -> None:
    step, chance = 0, random.Random(7)
    for _ in range(6):
        command = [sys.executable, "-c", SAVES_FOR_EVER, str(tmp_path), str(step)]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert program.stdout is not None
        said = [program.stdout.readline() for _ in range(chance.randrange(1, 5))]
        time.sleep(chance.random() * 0.01)
        program.kill()
        said += program.communicate()[0].splitlines()

        found = newest_checkpoint.newest_valid(str(tmp_path), ["*.npz"])

        assert found is not None
        with np.load(tmp_path / found.path) as saved:
            step = int(saved["weights"].min())
            assert saved["weights"].max() == step
        # What it said it had saved is there; the save it was killed in may be there too.
        assert step >= int(said[-1])


def save_like_hugging_face(folder: Path, step: int, *, upto: str = "trainer_state.json") -> Path:
    """What its Trainer leaves for one step, in the order in which it writes."""
    made = folder / f"checkpoint-{step}"
    names = [
        "model.npz",
        "training_args.bin",
        "optimizer.npz",
        "rng_state.pth",
        "trainer_state.json",
    ]
    for name in names[: names.index(upto) + 1]:
        if name.endswith(".npz"):
            save(folder, f"{made.name}/{name}", at=step)
        else:
            (made / name).write_bytes(b'{"global_step": 1}')
            os.utime(made / name, ns=(NOW + step * SECOND, NOW + step * SECOND))
    return made


@pytest.mark.parametrize("pattern", ["checkpoint-*", "*.npz"])
def test_a_folder_of_hugging_face_is_one_checkpoint(tmp_path: Path, pattern: str) -> None:
    for step in (500, 1000):
        save_like_hugging_face(tmp_path / "output", step)

    assert chosen(tmp_path, pattern) == "output/checkpoint-1000"


def test_a_folder_that_was_left_half_written_is_set_aside(tmp_path: Path) -> None:
    save_like_hugging_face(tmp_path / "output", 500)
    half = save_like_hugging_face(tmp_path / "output", 1000, upto="rng_state.pth")
    save_like_hugging_face(tmp_path / "output", 1500)
    os.truncate(tmp_path / "output" / "checkpoint-1500" / "optimizer.npz", 200)

    assert chosen(tmp_path) == "output/checkpoint-500"
    assert not half.exists()
    assert (tmp_path / "output" / "checkpoint-1500.damaged").is_dir()


def test_a_folder_that_hugging_face_has_not_renamed_yet_is_unfinished(tmp_path: Path) -> None:
    """Transformers 4.36 and 4.37 write to `tmp-checkpoint-600`, then rename it."""
    save_like_hugging_face(tmp_path / "output", 500)
    made = save_like_hugging_face(tmp_path / "output", 600, upto="optimizer.npz")
    made.rename(made.with_name("tmp-checkpoint-600"))

    assert chosen(tmp_path) == "output/checkpoint-500"


def test_a_folder_for_trials_is_looked_through(tmp_path: Path) -> None:
    save(tmp_path, "output/tmp-run/last.npz", at=1)

    assert chosen(tmp_path) == "output/tmp-run/last.npz"


def test_a_narrower_pattern_leaves_such_folders_alone(tmp_path: Path) -> None:
    save_like_hugging_face(tmp_path / "output", 500)
    save(tmp_path, "output/state.npz", at=1)

    assert chosen(tmp_path, "state.npz") == "output/state.npz"


SAFETENSORS = (2).to_bytes(8, "little") + b"{}"
MAY_BE_EMPTY = [
    {".metadata": b"x", "__0_0.distcp": b"x" * 1000, "__1_0.distcp": b""},
    {"trainer_state.json": b"{}", "model.safetensors": SAFETENSORS, "merges.txt": b""},
    {"trainer_state.json": b"{}", "model.safetensors": SAFETENSORS, "added_tokens.json": b""},
]
MUST_HOLD_DATA = [
    {".metadata": b"", "__0_0.distcp": b"x" * 1000},
    {"trainer_state.json": b"", "model.safetensors": SAFETENSORS},
    {"trainer_state.json": b"{}", "model.safetensors": b""},
    {"trainer_state.json": b"{}", "model.safetensors": SAFETENSORS, "optimizer.pt": b""},
]


@pytest.mark.parametrize("files", MAY_BE_EMPTY + MUST_HOLD_DATA, ids=str)
def test_a_folder_is_damaged_by_empty_files_that_must_hold_data(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    folder = tmp_path / "output/checkpoint-500"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)

    found = newest_checkpoint.newest_valid(str(tmp_path), [])

    assert (found is not None) == (files in MAY_BE_EMPTY)
    assert folder.exists() == (files in MAY_BE_EMPTY)


def lay(folder: Path, names: list[str], *, at: float = 0.0) -> None:
    """Files of a library, of which only their names count here."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SAFETENSORS if name.endswith(".safetensors") else b"state")
        moment = NOW + int(at * SECOND)
        os.utime(path, ns=(moment, moment))


@pytest.mark.parametrize("root", ["output", "checkpoints"])
def test_a_half_written_checkpoint_in_the_output_itself_takes_nothing_else_with_it(
    tmp_path: Path, root: str
) -> None:
    lay(tmp_path / root, ["metrics.csv", "__0_0.distcp", "__1_0.distcp"], at=200)
    save(tmp_path, f"{root}/epoch-9.npz", at=100)
    save(tmp_path, f"{root}/deep/epoch-8.npz", at=90)

    assert chosen(tmp_path) == f"{root}/epoch-9.npz"
    assert sorted(path.name for path in (tmp_path / root).iterdir()) == [
        "__0_0.distcp.damaged",
        "__1_0.distcp.damaged",
        "deep",
        "epoch-9.npz",
        "metrics.csv",
    ]
    assert [path.name for path in tmp_path.iterdir()] == [root]


@pytest.mark.parametrize("root", ["output", "checkpoints"])
def test_a_complete_checkpoint_in_the_output_itself_hides_nothing(
    tmp_path: Path, root: str
) -> None:
    lay(tmp_path / root, ["metrics.csv", "__0_0.distcp", ".metadata"], at=100)
    assert chosen(tmp_path) == root

    save(tmp_path, f"{root}/epoch-9.npz", at=200)
    assert chosen(tmp_path) == f"{root}/epoch-9.npz"

    lay(tmp_path / root, ["__0_0.distcp", ".metadata"], at=300)
    assert chosen(tmp_path) == root


def test_a_file_called_metadata_alone_makes_no_checkpoint(tmp_path: Path) -> None:
    lay(tmp_path / "output/run", [".metadata"], at=200)
    save(tmp_path, "output/run/epoch-9.npz", at=100)

    assert chosen(tmp_path) == "output/run/epoch-9.npz"


def test_a_folder_that_was_set_aside_is_not_met_again(tmp_path: Path) -> None:
    lay(tmp_path / "output/state", ["__0_0.distcp"])

    assert chosen(tmp_path) is None
    assert chosen(tmp_path) is None
    assert [path.name for path in (tmp_path / "output").iterdir()] == ["state.damaged"]


def test_a_folder_with_a_link_to_nothing_is_not_complete(tmp_path: Path) -> None:
    save_like_hugging_face(tmp_path / "output", 500)
    save_like_hugging_face(tmp_path / "output", 1000)
    (tmp_path / "output/checkpoint-1000/scheduler.pt").symlink_to("gone")

    assert chosen(tmp_path) == "output/checkpoint-500"
    assert (tmp_path / "output/checkpoint-1000.damaged").is_dir()


ACCELERATE = ["model.safetensors", "optimizer.bin", "scheduler.bin", "sampler.bin", "scaler.pt",
              "random_states_0.pkl", "random_states_1.pkl", "custom_checkpoint_0.pkl"]  # fmt: skip


@pytest.mark.parametrize("name", ["epoch_{}", "step_{}", "checkpoint_{}", "run/state-{}", "e{}"])
def test_a_folder_of_accelerate_is_one_checkpoint_under_any_name(tmp_path: Path, name: str) -> None:
    for number in (9, 10):
        lay(tmp_path / "output" / name.format(number), ACCELERATE, at=100 * number)

    assert chosen(tmp_path) == "output/" + name.format(10)


@pytest.mark.parametrize("written", range(1, 6))
def test_a_folder_is_half_written_that_lacks_what_the_ones_beside_it_have(
    tmp_path: Path, written: int
) -> None:
    lay(tmp_path / "output/epoch_2", ACCELERATE, at=100)
    lay(tmp_path / "output/epoch_3", ACCELERATE[:written], at=200)
    lay(tmp_path / "output/plots_3", ["model.csv"], at=200)

    assert chosen(tmp_path) == "output/epoch_2"
    assert (tmp_path / "output/epoch_3.damaged").is_dir()
    assert (tmp_path / "output/plots_3").is_dir()


OF_NO_SAVE = {
    "predictions beside Hugging Face": (
        "checkpoint-{}",
        ["model.safetensors", "training_args.bin", "predictions.json", "trainer_state.json"],
        ["predictions.json"],
    ),
    "a picture beside Accelerate": ("epoch_{}", ACCELERATE, ["sample.png"]),
    "data beside Accelerate": (
        "epoch_{}",
        [*ACCELERATE, "embeddings.pt", "plots/loss.png", "predictions.pt"],
        ["embeddings.pt", "plots/loss.png", "predictions.pt"],
    ),
    "a score beside DCP": ("step_{}", ["__0_0.distcp", ".metadata"], ["eval.json"]),
}


@pytest.mark.parametrize(("name", "save", "left"), OF_NO_SAVE.values(), ids=OF_NO_SAVE)
def test_a_folder_that_holds_no_data_of_a_save_is_left_alone(
    tmp_path: Path, name: str, save: list[str], left: list[str]
) -> None:
    lay(tmp_path / "output" / name.format(500), save, at=100)
    lay(tmp_path / "output" / name.format(600), left, at=200)

    assert chosen(tmp_path) == "output/" + name.format(500)
    assert (tmp_path / "output" / name.format(600)).is_dir()


BEGUN = {
    "Hugging Face": (
        "checkpoint-{}",
        ["config.json", "model.safetensors", "training_args.bin", "trainer_state.json"],
    ),
    "FSDP by Accelerate": (
        "epoch_{}",
        ["pytorch_model_fsdp_0/__0_0.distcp", "pytorch_model_fsdp_0/.metadata",
         "random_states_0.pkl"],
    ),
    "Diffusers": (
        "checkpoint-{}",
        ["unet/config.json", "unet/diffusion_pytorch_model.safetensors", "random_states_0.pkl"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "files"), BEGUN.values(), ids=BEGUN)
def test_a_folder_with_the_weights_alone_is_half_written(
    tmp_path: Path, name: str, files: list[str]
) -> None:
    lay(tmp_path / "output" / name.format(500), files, at=100)
    lay(tmp_path / "output" / name.format(600), files[:2], at=200)

    assert chosen(tmp_path) == "output/" + name.format(500)
    assert (tmp_path / "output" / (name.format(600) + ".damaged")).is_dir()


def test_the_state_of_accelerate_in_the_output_itself_is_one_checkpoint(tmp_path: Path) -> None:
    lay(tmp_path / "output", [*ACCELERATE, "log.txt"], at=100)

    assert chosen(tmp_path) == "output"


OF_LIBRARIES = {
    "DeepSpeed": (
        "tag{}",
        ["mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"],
    ),
    "DeepSpeed with bf16": ("tag{}", ["bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"]),
    "DeepSpeed with a pipeline": ("tag{}", ["layer_00-model_00-model_states.pt"]),
    "DCP": ("s{}", ["__0_0.distcp", ".metadata"]),
    "FSDP by Accelerate": (
        "epoch_{}",
        ["pytorch_model_fsdp_0/__0_0.distcp", "pytorch_model_fsdp_0/.metadata",
         "optimizer_0/__0_0.distcp", "optimizer_0/.metadata", "random_states_0.pkl"],
    ),
    "DeepSpeed by Accelerate": (
        "epoch_{}",
        ["pytorch_model/mp_rank_00_model_states.pt", "latest", "random_states_0.pkl"],
    ),
    "Megatron": ("iter_{:07d}", ["mp_rank_00/model_optim_rng.pt", "mp_rank_01/model_optim_rng.pt"]),
    "Megatron with DCP": ("iter_{:07d}", ["common.pt", "__0_0.distcp", ".metadata"]),
    "Orbax": ("{}", ["default/d/0", "default/manifest.ocdbt", "_CHECKPOINT_METADATA"]),
    "Trainer with DeepSpeed": (
        "checkpoint-{}",
        ["global_step1/mp_rank_00_model_states.pt", "latest", "rng_state_0.pth",
         "training_args.bin", "scheduler.pt", "trainer_state.json"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "files"), OF_LIBRARIES.values(), ids=OF_LIBRARIES)
def test_a_folder_of_every_library_is_one_checkpoint(
    tmp_path: Path, name: str, files: list[str]
) -> None:
    for number in (1, 2):
        lay(tmp_path / "output" / name.format(number), files, at=100 * number)

    assert chosen(tmp_path) == "output/" + name.format(2)


DEEPSPEED = ["mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt",
             "zero_pp_rank_1_mp_rank_00_optim_states.pt"]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"), [("epoch1", "epoch2"), ("b", "a"), ("global_step9", "global_step10")]
)
@pytest.mark.parametrize("written", [1, 2])
def test_a_folder_of_deepspeed_is_half_written_that_latest_does_not_name(
    tmp_path: Path, old: str, new: str, written: int
) -> None:
    lay(tmp_path / "output" / old, DEEPSPEED, at=100)
    lay(tmp_path / "output" / new, DEEPSPEED[:written], at=200)
    (tmp_path / "output/latest").write_text(old)

    assert chosen(tmp_path) == f"output/{old}"
    assert (tmp_path / f"output/{new}.damaged").is_dir()


def test_a_tag_of_deepspeed_beside_the_one_that_latest_names_is_left_alone(tmp_path: Path) -> None:
    """`save_checkpoint(…, tag="best", save_latest=False)`, and tags of before."""
    for tag, at in (("epoch1", 100), ("epoch2", 200), ("best", 300)):
        lay(tmp_path / "output" / tag, DEEPSPEED, at=at)
    lay(tmp_path / "output/other", DEEPSPEED[:1], at=50)
    (tmp_path / "output/latest").write_text("epoch2\n")

    assert chosen(tmp_path) in ("output/epoch2", "output/best")
    assert not list((tmp_path / "output").glob("*.damaged"))


@pytest.mark.parametrize("newest", ["global_step500", "global_step600"])
def test_a_complete_step_of_deepspeed_after_the_one_that_latest_names_is_left_alone(
    tmp_path: Path, newest: str
) -> None:
    """Saved with `save_latest=False`, or before the program went back to an earlier step."""
    for at, name in enumerate(["global_step500", "global_step1000", newest]):
        lay(tmp_path / "output" / name, DEEPSPEED, at=100 * at)
    (tmp_path / "output/latest").write_text(newest)

    assert chosen(tmp_path) == "output/global_step1000"
    assert not list((tmp_path / "output").glob("*.damaged"))


def test_an_iteration_of_megatron_is_half_written_that_its_tracker_does_not_name(
    tmp_path: Path,
) -> None:
    for number in (100, 200):
        name = f"output/iter_{number:07d}"
        lay(tmp_path / name, ["mp_rank_00/model_optim_rng.pt"], at=number)
    (tmp_path / "output/latest_checkpointed_iteration.txt").write_text("100")

    assert chosen(tmp_path) == "output/iter_0000100"


def fill_slots(folder: Path, written: list[tuple[str, float]], *, in_place: bool) -> None:
    """Write files in this order, at these seconds; their folder has the time that it would have."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = NOW
    for name, at in written:
        path = folder / name
        if not in_place or not path.exists():
            changed = NOW + int(at * SECOND)
        save(folder, name, at=at)
    os.utime(folder, ns=(changed, changed))


ROUNDS = [("ckpt_0.npz", 0), ("ckpt_1.npz", 100), ("ckpt_0.npz", 200), ("ckpt_1.npz", 300)]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("again", [0, 1, 2])
def test_of_slots_written_in_turn_the_one_written_last_comes_first(
    tmp_path: Path, in_place: bool, again: int
) -> None:
    more = [(f"ckpt_{number % 2}.npz", 400.0 + 100 * number) for number in range(again)]
    fill_slots(tmp_path / "output", [*ROUNDS, *more], in_place=in_place)

    assert chosen(tmp_path) == f"output/{(ROUNDS + more)[-1][0]}"


@pytest.mark.parametrize("name", ["ckpt_{}.npz", "model_{}.npz", "epoch-{}.npz", "{}.npz"])
def test_a_clock_set_back_does_not_make_slots_of_steps(tmp_path: Path, name: str) -> None:
    written = [(name.format(0), 5000.0), (name.format(1), 100.0)]
    fill_slots(tmp_path / "output", written, in_place=False)

    assert chosen(tmp_path) == "output/" + name.format(1)


INDEX = b"table" + bytes.fromhex("57fb808b247547db")


def save_like_tensorflow(folder: Path, number: int, *, shards: int = 1) -> Path:
    """`tf.train.Checkpoint`: the data first, then the index."""
    index = folder / f"ckpt-{number}.index"
    names = [f"ckpt-{number}.data-{shard:05d}-of-{shards:05d}" for shard in range(shards)]
    lay(folder, names, at=100 * number)
    index.write_bytes(INDEX)
    os.utime(index, ns=(NOW + 100 * number * SECOND,) * 2)
    return index


@pytest.mark.parametrize(
    "patterns", [[], ["*.index"], ["ckpt-*"], newest_checkpoint.DEFAULT_PATTERNS]
)
def test_a_checkpoint_of_tensorflow_is_known_by_its_index(
    tmp_path: Path, patterns: list[str]
) -> None:
    for number in (9, 10):
        save_like_tensorflow(tmp_path / "output/tf", number, shards=2)
    (tmp_path / "output/tf/checkpoint").write_text('model_checkpoint_path: "ckpt-10"')
    lay(tmp_path / "output/export/variables", ["variables.index", "variables.data-00000-of-00001"])

    assert chosen(tmp_path, *patterns) == "output/tf/ckpt-10.index"
    found = newest_checkpoint.everything(str(tmp_path / "output/tf"), patterns)
    assert sorted(one.path for one in found) == ["ckpt-10.index", "ckpt-9.index"]


def test_a_checkpoint_of_tensorflow_without_all_its_files_is_damaged(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        save_like_tensorflow(tmp_path / "output", number, shards=2)
    (tmp_path / "output/ckpt-2.data-00001-of-00002").unlink()
    os.truncate(tmp_path / "output/ckpt-3.index", 6)

    assert chosen(tmp_path) == "output/ckpt-1.index"


def test_an_index_of_something_else_is_no_checkpoint(tmp_path: Path) -> None:
    lay(tmp_path / "output", ["faiss.index", "other.data-00000-of-00001"])

    assert chosen(tmp_path) is None


def test_what_orbax_has_not_renamed_is_no_checkpoint_with_all_it_holds(tmp_path: Path) -> None:
    of_step = ["default/d/0", "default/manifest.ocdbt"]
    lay(tmp_path / "output/1", [*of_step, "_CHECKPOINT_METADATA"], at=100)
    lay(tmp_path / "output/2.orbax-checkpoint-tmp-7", of_step, at=200)

    assert chosen(tmp_path) == "output/1"
    assert (tmp_path / "output/2.orbax-checkpoint-tmp-7").is_dir()
