"""Checkpoints beside the code, while the program still runs."""

import io
import os
import pickle
import random
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rabaska.node.job import copy_files, prepare_program, results, unpacked_code
from rabaska.node.job.rescue_checkpoints import Rescue


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "carried/output").mkdir(parents=True)
    return tmp_path / "code"


def rescue_for(code: Path) -> Rescue:
    return Rescue(str(code), str(code.parent / "carried"), ["*.txt"], {})


def kept(code: Path) -> list[str]:
    return sorted(os.listdir(code.parent / "carried/output"))


def test_the_newest_checkpoint_is_copied_once(code: Path) -> None:
    (code / "step-1.txt").write_text("1")
    (code / "notes").write_text("no checkpoint")
    rescue = rescue_for(code)

    paths = [rescue.sweep(), rescue.sweep()]

    assert paths == ["step-1.txt", None]
    assert kept(code) == ["notes", "step-1.txt"]
    assert prepare_program.paths(str(code.parent / "carried")) == ["notes", "step-1.txt"]


def test_copies_follow_a_program_that_deletes_old_checkpoints(code: Path) -> None:
    rescue = rescue_for(code)
    (code / "step-1.txt").write_text("1")
    rescue.sweep()
    (code / "step-1.txt").unlink()
    (code / "step-2.txt").write_text("2")

    rescue.sweep()

    assert kept(code) == ["step-2.txt"]


def test_a_checkpoint_that_is_a_link_to_the_output_is_left_alone(code: Path) -> None:
    there = code.parent / "carried/output/last.txt"
    there.write_text("1")
    (code / "last.txt").symlink_to(there)

    assert rescue_for(code).sweep() is None


def test_an_empty_file_is_no_checkpoint_yet(code: Path) -> None:
    (code / "last.txt").touch()

    assert rescue_for(code).sweep() is None
    assert kept(code) == []


def test_a_file_that_changes_while_it_is_copied_replaces_nothing(code: Path) -> None:
    (code / "last.txt").write_bytes(b"new" * 1_000_000)
    target = code.parent / "carried/output/last.txt"
    target.write_text("old")

    def going() -> bool:
        with (code / "last.txt").open("ab") as stream:
            stream.write(b"more")
        return True

    with pytest.raises(copy_files.Changed):
        copy_files.copy_whole(str(code / "last.txt"), str(target), going)

    assert target.read_text() == "old"
    assert kept(code) == ["last.txt"]


def test_a_file_that_is_replaced_while_it_is_copied_is_copied_as_it_was(code: Path) -> None:
    first = b"1" * 5_000_000
    (code / "last.txt").write_bytes(first)
    os.utime(code / "last.txt", (1000, 1000))

    def going() -> bool:
        (code / "fresh").write_bytes(b"2" * 5_000_000)
        (code / "fresh").replace(code / "last.txt")
        return True

    target = code.parent / "carried/output/last.txt"
    copy_files.copy_whole(str(code / "last.txt"), str(target), going)

    assert target.read_bytes() == first
    assert target.stat().st_mtime == 1000


REPLACES_FOR_EVER = """
import os, sys
number = 0
while True:
    number += 1
    with open("fresh", "wb") as stream:
        stream.write(b"%020d" % number * 100_000)
    os.replace("fresh", "last.txt")
    if number == 1:
        print("ready", flush=True)
"""

REPLACES_A_FOLDER_FOR_EVER = """
import os, shutil, sys
number = 0
while True:
    number += 1
    os.makedirs("fresh")
    for name in ("model.txt", "optimizer.txt"):
        with open(os.path.join("fresh", name), "wb") as stream:
            stream.write(b"%020d" % number * 20_000)
    if os.path.exists("last"):
        os.rename("last", "old")
    os.rename("fresh", "last")
    shutil.rmtree("old", ignore_errors=True)
    if number == 1:
        print("ready", flush=True)
"""


@pytest.fixture
def program(code: Path) -> Iterator[Callable[[str], None]]:
    """Runs a program beside the sweeps, until the test is over."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str) -> None:
        words = [sys.executable, "-c", text]
        started.append(subprocess.Popen(words, cwd=code, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        started[-1].stdout.readline()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def slow(rescue: Rescue) -> None:
    """Make copying slower than the program is, as shared storage may be."""
    going = rescue._going

    def slowly() -> bool:
        time.sleep(0.05)
        return going()

    rescue._going = slowly  # type: ignore[method-assign]


def test_a_checkpoint_that_is_replaced_faster_than_it_is_copied_is_rescued(
    code: Path, program: Callable[[str], None]
) -> None:
    program(REPLACES_FOR_EVER)
    rescue = rescue_for(code)
    slow(rescue)

    assert rescue.sweep() == "last.txt"

    content = (code.parent / "carried/output/last.txt").read_bytes()
    assert content == content[:20] * 100_000


def test_a_folder_that_is_replaced_faster_than_it_is_copied_is_of_one_save(
    code: Path, program: Callable[[str], None]
) -> None:
    program(REPLACES_A_FOLDER_FOR_EVER)
    rescue = rescue_for(code)
    slow(rescue)

    while rescue.sweep() is None:
        pass

    there = code.parent / "carried/output/last"
    found = {path.read_bytes()[:20] for path in there.iterdir()}
    assert sorted(path.name for path in there.iterdir()) == ["model.txt", "optimizer.txt"]
    assert len(found) == 1


def test_what_can_never_be_copied_is_said_once(code: Path) -> None:
    """A file that is rewritten in place all the time."""
    told: list[tuple[str, str]] = []
    (code / "last.txt").write_bytes(b"1" * 3_000_000)
    rescue = Rescue(
        str(code), str(code.parent / "carried"), ["*.txt"], {}, lambda *said: told.append(said)
    )

    def rewritten() -> bool:
        with (code / "last.txt").open("ab") as stream:
            stream.write(b"more")
        return True

    rescue._going = rewritten  # type: ignore[method-assign]
    for _ in range(8):
        assert rescue.sweep() is None

    assert told == [("last.txt", "it changes faster than it can be copied")]
    assert kept(code) == []


LIBRARIES = {
    "hugging face": (
        "checkpoint-{}", ["model.txt", "optimizer.txt", "training_args.bin", "trainer_state.json"],
    ),
    "dcp": ("step_{}", ["__0_0.distcp", "__1_0.distcp", ".metadata"]),
    "orbax": ("{}", ["d/0/data", "manifest.ocdbt", "_CHECKPOINT_METADATA"]),
    "deepspeed": ("global_step{}", ["mp_rank_00_model_states.pt", "bf16_zero_pp_rank_0_states.pt"]),
    "accelerate": ("checkpoint_{}", ["model.txt", "optimizer.bin", "random_states_0.pkl"]),
    "by hand": ("epoch_{}", ["model.txt", "optimizer.bin", "args.json"]),
    "overwritten": ("latest", ["model.txt", "optimizer.bin"]),
}  # fmt: skip


def save_folder(code: Path, name: str, names: list[str], step: int, *, zipped: bytes) -> Path:
    folder = code / name.format(step)
    for file in names:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        content = zipped if file.endswith(".pt") else b"\x80%d %s." % (step, file.encode())
        (folder / file).write_bytes(content)
    return folder


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_checkpoint_that_is_a_folder_is_rescued_complete(code: Path, library: str) -> None:
    name, names = LIBRARIES[library]
    zipped = io.BytesIO()
    zipfile.ZipFile(zipped, "w").writestr("data.pkl", b"x")
    patterns = ["*.pt", "*.pth", "*.ckpt", "*.safetensors", "*.txt"]
    rescue = Rescue(str(code), str(code.parent / "carried"), patterns, {})
    folders = []

    for step in (500, 1000):
        folders.append(save_folder(code, name, names, step, zipped=zipped.getvalue()))
        assert rescue.sweep() is not None
        assert rescue.sweep() is None

    for folder in folders:
        copy = code.parent / "carried/output" / folder.name
        assert files_in(copy) == files_in(folder)
    assert not list((code.parent / "carried").rglob("*.partial"))


def files_in(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("library", ["hugging face", "dcp", "accelerate"])
def test_a_folder_without_its_last_file_is_not_rescued(code: Path, library: str) -> None:
    name, names = LIBRARIES[library]
    save_folder(code, name, names[:-1], 500, zipped=b"")
    rescue = Rescue(str(code), str(code.parent / "carried"), ["*.txt", "*.distcp"], {})

    for _ in range(2):
        rescue.sweep()

    assert not (code.parent / "carried/output" / name.format(500)).exists()


def test_parts_that_were_saved_together_are_rescued_together(code: Path) -> None:
    for name in ("model.txt", "optimizer.txt"):
        (code / name).write_bytes(b"x" * 2_000_000)

    assert rescue_for(code).sweep() == "model.txt"
    assert kept(code) == ["model.txt", "optimizer.txt"]


def test_small_new_files_are_rescued_too(code: Path) -> None:
    (code / "train.py").write_text("print()")
    before = unpacked_code.listing(str(code))
    (code / "losses.csv").write_text("1,0.5")
    (code / "large.bin").write_bytes(b"x" * 3_000_000)
    rescue = Rescue(str(code), str(code.parent / "carried"), ["*.txt"], before)

    rescue.sweep()
    (code / "losses.csv").write_text("1,0.5\n2,0.25")
    rescue.sweep()

    assert kept(code) == ["losses.csv"]
    assert (code.parent / "carried/output/losses.csv").read_text() == "1,0.5\n2,0.25"


def test_of_checkpoints_that_a_program_deletes_no_copy_is_left_but_the_newest(code: Path) -> None:
    rescue = rescue_for(code)
    for step in range(1, 8):
        (code / f"step-{step}.txt").write_text("x" * step)
        rescue.sweep()
        (code / f"step-{step - 3}.txt").unlink(missing_ok=True)
    rescue.sweep()

    assert kept(code) == ["step-4.txt", "step-5.txt", "step-6.txt", "step-7.txt"]


COPIES_FOR_EVER = """
import os, sys
from rabaska.node.job import copy_files
source, target, room = sys.argv[1:]
print("ready", flush=True)
while True:
    copy_files.copy_folder_whole(source, target, room)
"""


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_complete_whenever_its_copying_is_killed(code: Path, exchange: bool) -> None:
    chance = random.Random(14)
    target = code.parent / "carried/output/checkpoint-500"
    save_folder(code, "checkpoint-{}", [f"{n}.txt" for n in range(6)], 500, zipped=b"")
    for number in range(12):
        text = COPIES_FOR_EVER
        if not exchange:  # as on storage that cannot swap two names
            text = text.replace("\nsource,", "\ncopy_files._exchange = lambda *_: False\nsource,")
        words = [sys.executable, "-c", text, str(code / "checkpoint-500"), str(target)]
        copier = subprocess.Popen([*words, str(code.parent)], stdout=subprocess.PIPE, text=True)
        assert copier.stdout is not None
        copier.stdout.readline()
        while number == 0 and not target.exists():
            time.sleep(0.001)
        time.sleep(chance.random() * 0.1)
        copier.kill()
        copier.communicate()

        copy_files.recover(str(code.parent / "carried"))

        assert files_in(target) == files_in(code / "checkpoint-500")
        assert [path.name for path in target.parent.iterdir()] == [target.name]


class Late:
    """There is time for so many blocks of a megabyte."""

    def __init__(self, blocks: int) -> None:
        self.left = blocks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left >= 0


def test_at_the_limit_the_newest_checkpoint_comes_first(code: Path) -> None:
    for step in range(1, 6):
        (code / f"aaa-step-{step}.txt").write_bytes(b"x" * 3_000_000)
        os.utime(code / f"aaa-step-{step}.txt", (step * 100, step * 100))
    (code / "aa-picture.png").write_bytes(b"x" * 3_000_000)
    (code / "z-losses.csv").write_text("1")

    found = results.keep_new(
        str(code), str(code.parent / "carried"), {}, patterns=["*.txt"], going=Late(6)
    )

    assert kept(code) == ["aaa-step-5.txt"]
    assert found.paths == ["aaa-step-5.txt"]
    assert list(found.left)[:2] == ["aaa-step-4.txt", "aaa-step-3.txt"]
    assert list(found.left)[-2:] == ["z-losses.csv", "aa-picture.png"]


def test_what_was_rescued_is_not_copied_again_at_the_end(code: Path) -> None:
    (code / "step-1.txt").write_bytes(b"x" * 3_000_000)
    rescue_for(code).sweep()

    found = results.keep_new(
        str(code), str(code.parent / "carried"), {}, patterns=["*.txt"], going=Late(1)
    )

    assert (found.paths, found.size, list(found.left)) == (["step-1.txt"], 0, [])


def across_disks(source: Path, target: Path) -> None:
    """As shutil.move does between two disks: into the file that is there, with size and time."""
    shutil.copy2(source, target)
    source.unlink()


@pytest.mark.parametrize("move", [shutil.move, across_disks])
def test_what_the_program_moves_to_the_output_itself_stays_there(
    code: Path, move: Callable[[Path, Path], None]
) -> None:
    rescue = rescue_for(code)
    (code / "step-1.txt").write_text("1")
    rescue.sweep()
    move(code / "step-1.txt", code.parent / "carried/output/step-1.txt")
    (code / "step-2.txt").write_text("2")

    rescue.sweep()

    assert kept(code) == ["step-1.txt", "step-2.txt"]


def test_a_folder_that_the_program_adds_to_in_the_output_stays_there(code: Path) -> None:
    rescue = rescue_for(code)
    save_folder(code, "epoch_{}", ["model.txt"], 1, zipped=b"")
    rescue.sweep()
    (code.parent / "carried/output/epoch_1/scores.json").write_text("{}")
    shutil.rmtree(code / "epoch_1")
    save_folder(code, "epoch_{}", ["model.txt"], 2, zipped=b"")

    rescue.sweep()

    assert kept(code) == ["epoch_1", "epoch_2"]


@pytest.mark.parametrize("name", ["last.txt", "epoch_1/model.txt"])
@pytest.mark.parametrize("rescued_before", [True, False])
def test_no_copy_replaces_what_the_program_wrote_to_the_output(
    code: Path, name: str, rescued_before: bool
) -> None:
    output, told = code.parent / "carried/output", []
    rescue = Rescue(
        str(code), str(code.parent / "carried"), ["*.txt"], {}, said=lambda *it: told.append(it)
    )
    for path in (code / name, output / name):
        path.parent.mkdir(exist_ok=True)
    (code / name).write_text("first")
    if rescued_before:
        rescue.sweep()
    (output / name).write_text("the program's own")
    (code / name).write_text("beside the code")

    for _ in range(2):
        rescue.sweep()
        results.keep_new(str(code), str(code.parent / "carried"), {}, patterns=["*.txt"])

    assert (output / name).read_text() == "the program's own"
    assert (output / "beside-code" / name).read_text() == "beside the code"
    assert told == [(name.split("/")[0], "beside-code/" + name.split("/")[0])]


def test_the_next_job_finds_its_file_and_not_the_one_of_that_name(code: Path) -> None:
    carried = code.parent / "carried"
    (carried / "output/last.txt").write_text("the program's own")
    (code / "last.txt").write_text("1")
    results.keep_new(str(code), str(carried), {}, patterns=["*.txt"])
    (code / "last.txt").unlink()

    prepare_program.show(str(code), str(carried), [])
    before = unpacked_code.listing(str(code))
    found = (code / "last.txt").read_text()
    (code / "fresh").write_text("2")
    (code / "fresh").replace(code / "last.txt")
    results.keep_new(str(code), str(carried), before, patterns=["*.txt"])

    assert found == "1"
    assert files_in(carried / "output") == {
        "last.txt": b"the program's own",
        "beside-code/last.txt": b"2",
    }


def test_what_the_program_copied_to_the_output_itself_is_not_kept_twice(code: Path) -> None:
    rescue = rescue_for(code)
    (code / "last.txt").write_text("1")
    os.utime(code / "last.txt", (1000, 1000))
    shutil.copy(code / "last.txt", code.parent / "carried/output/last.txt")

    rescue.sweep()
    (code / "last.txt").unlink()
    (code / "step-2.txt").write_text("2")
    rescue.sweep()

    assert kept(code) == ["last.txt", "step-2.txt"]


def test_a_file_to_keep_is_one_with_that_of_the_output(code: Path) -> None:
    """A program that first writes through the link, and then puts a file in its place."""
    carried = code.parent / "carried"
    prepare_program.show(str(code), str(carried), ["last.txt"])
    before = unpacked_code.listing(str(code))
    (code / "last.txt").write_text("1")
    (code / "fresh").write_text("2")
    (code / "fresh").replace(code / "last.txt")

    results.keep_new(str(code), str(carried), before, patterns=["*.txt"])

    assert files_in(carried / "output") == {"last.txt": b"2"}


def pickled(number: int) -> bytes:
    return pickle.dumps({"i": number, "weights": bytes(100_000)})


@pytest.mark.parametrize("name", ["model.pkl", "epoch_1/model.pkl"])
def test_a_torn_checkpoint_is_kept_beside_the_valid_copy_and_not_in_its_place(
    code: Path, name: str
) -> None:
    (code / name).parent.mkdir(exist_ok=True)
    (code / name).write_bytes(pickled(1))
    Rescue(str(code), str(code.parent / "carried"), ["*.pkl"], {}).sweep()
    (code / name).write_bytes(pickled(2)[:50_000])

    found = results.keep_new(str(code), str(code.parent / "carried"), {}, patterns=["*.pkl"])

    top = name.split("/")[0]
    output = files_in(code.parent / "carried/output")
    assert output == {name: pickled(1), name.replace(top, top + ".damaged"): pickled(2)[:50_000]}
    assert [path for path, _ in found.damaged] == [top]
    assert "cut short" in found.damaged[0][1]
    assert prepare_program.paths(str(code.parent / "carried")) == [name]


def test_a_torn_checkpoint_is_kept_where_no_valid_one_is(code: Path) -> None:
    (code / "model.pkl").write_bytes(pickled(1)[:50_000])

    results.keep_new(str(code), str(code.parent / "carried"), {}, patterns=["*.pkl"])

    assert kept(code) == ["model.pkl"]


def test_a_save_of_which_one_file_is_being_written_replaces_nothing(code: Path) -> None:
    rescue = Rescue(str(code), str(code.parent / "carried"), ["*.pkl"], {})
    for name in ("model.pkl", "optimizer.pkl"):
        (code / name).write_bytes(pickled(1))
    rescue.sweep()
    (code / "model.pkl").write_bytes(pickled(2))
    (code / "optimizer.pkl").write_bytes(pickled(2)[:50_000])

    rescue.sweep()

    assert files_in(code.parent / "carried/output") == {
        "model.pkl": pickled(1),
        "optimizer.pkl": pickled(1),
    }


@pytest.mark.parametrize("name", ["model.pkl", "last/model.pkl"])
def test_a_save_in_place_by_the_next_job_does_not_touch_the_only_copy(
    code: Path, name: str
) -> None:
    carried = code.parent / "carried"
    (code / name).parent.mkdir(exist_ok=True)
    (code / name).write_bytes(pickled(1))
    (code / "losses.csv").write_text("1\n")
    results.keep_new(str(code), str(carried), {}, patterns=["*.pkl"])
    shutil.rmtree(code)

    prepare_program.show(str(code), str(carried), [])
    before = unpacked_code.listing(str(code))
    found = (code / name).read_bytes()
    unchanged = results.keep_new(str(code), str(carried), before, patterns=["*.pkl"]).paths
    with (code / name).open("wb") as stream:
        stream.write(pickled(2)[:50_000])

    assert (found, unchanged) == (pickled(1), [])
    assert (carried / "output" / name).read_bytes() == pickled(1)
    assert (code / "losses.csv").is_symlink()
    (code / name).write_bytes(pickled(2))
    results.keep_new(str(code), str(carried), before, patterns=["*.pkl"])
    assert (carried / "output" / name).read_bytes() == pickled(2)


def test_where_a_copy_finds_no_room_the_next_job_is_given_the_file_itself_and_told(
    small_disk: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, carried = small_disk / "code", tmp_path / "carried"
    code.mkdir()
    (carried / "output").mkdir(parents=True)
    (code / "model.pkl").write_bytes(12 * pickled(1))
    results.keep_new(str(code), str(carried), {}, patterns=["*.pkl"])
    (code / "model.pkl").unlink()

    prepare_program.show(str(code), str(carried), [])

    assert (code / "model.pkl").is_symlink()
    assert "model.pkl in the code folder is the only copy" in capfd.readouterr().out


def rescue_of_pickles(code: Path, told: list[tuple[str, str]]) -> Rescue:
    carried = str(code.parent / "carried")
    return Rescue(str(code), carried, ["*.pkl"], {}, lambda *said: told.append(said))


def grows_while_it_is_looked_at(rescue: Rescue, path: Path) -> None:
    """Let a file grow whenever the rescue waits to see whether a folder stays the same."""

    def grow(seconds: float) -> bool:
        with path.open("a") as stream:
            stream.write("step 1 loss 0.5\n")
        return False

    rescue._over.wait = grow  # type: ignore[method-assign, assignment]


NAMES_OF_EXPERIMENTS = [
    "resnet_epochs100",
    "ep50",
    "step1_pretrain",
    "iter-a10",
    "round2",
    "epoch_3",
]


@pytest.mark.parametrize("name", NAMES_OF_EXPERIMENTS)
def test_a_log_that_grows_beside_checkpoints_does_not_keep_them_from_rescue(
    code: Path, name: str
) -> None:
    told: list[tuple[str, str]] = []
    folder = code / "runs" / name
    folder.mkdir(parents=True)
    (folder / "last.pkl").write_bytes(pickled(1))
    (folder / "train.log").write_text("step 0\n")
    rescue = rescue_of_pickles(code, told)
    grows_while_it_is_looked_at(rescue, folder / "train.log")

    first = rescue.sweep(quiet=1)
    again = rescue.sweep(quiet=1)

    there = files_in(code.parent / "carried/output/runs" / name)
    assert (first, again) == (f"runs/{name}/last.pkl", None)
    assert there["last.pkl"] == pickled(1)
    assert sorted(there) == ["last.pkl", "train.log"]
    assert told == []


@pytest.mark.parametrize("name", ["model.pkl", "optimizer.bin"])
def test_a_folder_whose_save_is_still_written_is_not_rescued_and_that_is_said_once(
    code: Path, name: str
) -> None:
    told: list[tuple[str, str]] = []
    (code / "epoch_3").mkdir()
    (code / "epoch_3/last.pkl").write_bytes(pickled(1))
    (code / "epoch_3" / name).write_bytes(pickled(1))
    rescue = rescue_of_pickles(code, told)
    grows_while_it_is_looked_at(rescue, code / "epoch_3" / name)

    for _ in range(5):
        assert rescue.sweep(quiet=1) is None

    assert kept(code) == []
    assert told == [("epoch_3", copy_files.CHANGED)]


@pytest.mark.parametrize("name", ["resnet_epochs100", "epoch_100", "last"])
def test_one_torn_checkpoint_does_not_hide_valid_ones_of_other_steps(code: Path, name: str) -> None:
    carried, folder = code.parent / "carried", code / "runs" / name
    folder.mkdir(parents=True)
    (folder / "model_10.pkl").write_bytes(pickled(10))
    os.utime(folder / "model_10.pkl", (1000, 1000))
    results.keep_new(str(code), str(carried), {}, patterns=["*.pkl"])
    for step in (20, 30):
        (folder / f"model_{step}.pkl").write_bytes(pickled(step))
    (folder / "model_40.pkl").write_bytes(pickled(40)[:50_000])

    found = results.keep_new(str(code), str(carried), {}, patterns=["*.pkl"])

    there = carried / "output/runs" / name
    assert [path.name for path in there.parent.iterdir()] == [name]
    assert (there / "model_30.pkl").read_bytes() == pickled(30)
    assert list(found.damaged) == []


@pytest.mark.parametrize("rescued", [True, False])
def test_the_next_job_finds_the_checkpoint_through_an_absolute_link(
    code: Path, rescued: bool
) -> None:
    carried = code.parent / "carried"
    (code / "ckpts").mkdir()
    (code / "ckpts/step-1.pkl").write_bytes(pickled(1))
    (code / "ckpts/latest.pkl").symlink_to(code / "ckpts/step-1.pkl")
    if rescued:
        rescue_of_pickles(code, []).sweep()
    else:
        results.keep_new(str(code), str(carried), {}, patterns=["*.pkl"])
    shutil.rmtree(code)

    prepare_program.show(str(code), str(carried), [])

    assert (carried / "output/ckpts/latest.pkl").read_bytes() == pickled(1)
    assert (code / "ckpts/latest.pkl").read_bytes() == pickled(1)


def test_a_link_to_what_is_not_rescued_yet_replaces_none_that_leads_to_a_copy(code: Path) -> None:
    rescue = rescue_of_pickles(code, [])
    (code / "step-1.pkl").write_bytes(pickled(1))
    (code / "latest.pkl").symlink_to(code / "step-1.pkl")
    rescue.sweep()
    (code / "step-2.pkl").write_bytes(pickled(2)[:50_000])
    (code / "fresh").symlink_to(code / "step-2.pkl")
    (code / "fresh").replace(code / "latest.pkl")

    rescue.sweep()

    assert (code.parent / "carried/output/latest.pkl").read_bytes() == pickled(1)


def test_copies_follow_a_program_that_moves_old_checkpoints(code: Path) -> None:
    rescue = rescue_of_pickles(code, [])
    (code / "archive").mkdir()
    for step in (1, 2, 3):
        for old in code.glob("ckpt-*"):
            old.rename(code / "archive" / old.name)
        (code / f"ckpt-{step}.pkl").write_bytes(pickled(step) * 20)
        rescue.sweep()

    output = code.parent / "carried/output"
    assert files_in(output) == files_in(code)
    assert set(files_in(output)) <= set(prepare_program.paths(str(code.parent / "carried")))


def test_a_copy_that_moves_replaces_that_of_an_older_checkpoint(code: Path) -> None:
    rescue = rescue_of_pickles(code, [])
    for step in (1, 2, 3):
        for old in code.glob("ckpt-*"):
            old.replace(code / "previous.pkl")
        (code / f"ckpt-{step}.pkl").write_bytes(pickled(step) * 20)
        os.utime(code / f"ckpt-{step}.pkl", (step * 100, step * 100))
        rescue.sweep()

    assert files_in(code.parent / "carried/output") == files_in(code)


def test_the_copy_of_a_folder_moves_with_it(code: Path) -> None:
    rescue = rescue_of_pickles(code, [])
    (code / "archive").mkdir()
    for step in (1, 2, 3):
        for old in code.glob("epoch_*"):
            old.rename(code / "archive" / old.name)
        for name in ("model.pkl", "optimizer.pkl"):
            path = code / f"epoch_{step}" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pickled(step) * 20)
        rescue.sweep()

    assert files_in(code.parent / "carried/output") == files_in(code)
