"""Zero-code watching without PyTorch: what is counted, how saves are whole, who comes first."""

import io
import itertools
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.needs.pythons import interpreters

from rabaska.training.watching.counting import Count, Lines, rank
from rabaska.training.watching.framework_hooks import counted, timed
from rabaska.training.watching.watcher import Watcher
from rabaska.training.watching.whole_saves import Sparing, whole

SOURCES = Path(__file__).parents[2] / "src"
FIRST = SOURCES / "rabaska/training/watching/first"


class Iterator:
    """As the iterator of a DataLoader looks to the watcher."""

    def __init__(self, length):
        self.length = length
        self._num_yielded = 0

    def __len__(self):
        return self.length


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Program:
    """A training loop that is watched, with a clock of its own."""

    def __init__(self, **environment):
        self.clock = Clock()
        watcher = Watcher(environment)
        watcher.count.clock = self.clock
        self.count = watcher.count
        self.takes = 0.0  # seconds to make the next batch
        self.next = timed(self._advance, watcher)
        self.stepped = counted(watcher)

    def _advance(self, iterator):
        self.clock.now += self.takes
        if iterator._num_yielded == iterator.length:
            raise StopIteration
        iterator._num_yielded += 1

    def batch(self, iterator, waiting=0.0):
        self.takes = waiting
        try:
            self.next(iterator)
        except StopIteration:
            return False
        return True

    def step(self, optimizer="SGD"):
        self.stepped(optimizer, (), {})

    def train(self, batches, optimizers=("SGD",), validate=0, accumulate=1, iterator=None):
        iterator = iterator or Iterator(batches)
        iterator._num_yielded = number = 0
        while self.batch(iterator):
            number += 1
            if validate and number == validate:
                self.evaluate(3)
            if number % accumulate == 0:
                for optimizer in optimizers:
                    self.step(optimizer)

    def evaluate(self, batches):
        iterator = Iterator(batches)
        while self.batch(iterator):
            pass

    def told(self):
        line = self.count.line(0.0)
        return line["steps"], line["epochs"], line["batches"]


def test_epochs_are_the_times_a_loader_that_trained_was_exhausted():
    program = Program()

    program.train(5)
    program.evaluate(2)
    program.train(5)

    assert program.told() == (10, 2, 10)
    assert (program.count.batch, program.count.length) == (0, 5)


def test_workers_that_persist_are_iterated_epoch_after_epoch():
    program = Program()
    iterator = Iterator(4)

    for _ in range(3):
        program.train(4, iterator=iterator)

    assert program.told() == (12, 3, 12)


def test_a_loader_left_after_its_last_batch_was_an_epoch_too():
    """Lightning counts the batches, and never asks for one more."""
    program = Program()

    for _ in range(3):
        iterator = Iterator(4)
        for _ in range(4):
            program.batch(iterator)
            program.step()
        program.evaluate(2)

    assert program.told() == (12, 3, 12)
    assert program.count.line(0.0)["batch"] == 0


def test_the_middle_of_an_epoch_is_told_as_such():
    program = Program()
    program.train(5)
    iterator = Iterator(5)

    for _ in range(3):
        program.batch(iterator)
        program.step()

    assert program.told() == (8, 1, 8)
    assert program.count.batch == 3


def test_batches_passed_over_to_come_back_to_a_place_are_no_work():
    program = Program()
    iterator = Iterator(10)
    for _ in range(6):
        program.batch(iterator)

    for _ in range(2):
        program.batch(iterator)
        program.step()

    assert program.told() == (2, 0, 2)
    assert program.count.batch == 8


def test_a_validation_in_the_middle_of_an_epoch_counts_as_nothing():
    program = Program()

    program.train(5, validate=2)

    assert program.told() == (5, 1, 5)


def test_two_optimizers_on_one_batch_make_one_step():
    program = Program()

    program.train(5, optimizers=("discriminator", "generator"))

    assert program.told() == (5, 1, 5)


def test_gradients_added_up_over_batches_make_one_step():
    program = Program()

    program.train(8, accumulate=4)

    assert (program.count.steps, program.count.epochs) == (2, 1)


def test_steps_without_a_loader_count_all():
    program = Program()

    for _ in range(3):
        program.step()

    assert program.told() == (3, 0, 0)


@given(
    st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=30),
)
def test_waiting_is_the_time_spent_inside_loaders(spans):
    program = Program()
    iterator = Iterator(len(spans))

    for waiting, work in spans:
        program.batch(iterator, waiting)
        program.clock.now += work
        program.step()

    assert program.count.waiting == pytest.approx(sum(waiting for waiting, _ in spans))


def test_files_written_without_a_step_between_them_are_one_save():
    count = Count()

    for _ in range(3):
        count.steps += 1
        count.save(0.1)
        count.save(0.2)

    assert count.saves == 3
    assert count.saving == pytest.approx(0.9)


def test_lines_come_often_at_first_then_every_few_seconds(tmp_path):
    path = tmp_path / "metrics.jsonl"
    program = Program(RABASKA_METRICS=str(path), RABASKA_JOB="2")

    for _ in range(8 * 3600):
        program.step()
        program.clock.now += 0.5

    written = [json.loads(line) for line in path.read_text().splitlines()]
    moments = [line["steps"] / 2 for line in written]
    assert len([moment for moment in moments if moment < 10]) >= 10
    assert max(later - sooner for sooner, later in itertools.pairwise(moments)) <= 15.5
    assert len(written) < 1500
    assert written[-1]["job"] == 2


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 0),
        ({"RANK": "3"}, 3),
        ({"SLURM_PROCID": "2"}, 2),
        ({"RANK": "0", "LOCAL_RANK": "1"}, 0),
    ],
)
def test_the_rank_is_what_launchers_say(environment, expected):
    assert rank(environment) == expected


def test_only_the_first_rank_writes(tmp_path):
    path = tmp_path / "metrics.jsonl"
    count = Count()
    count.steps = 1

    Lines({"RABASKA_METRICS": str(path), "RANK": "1"}).write(count)

    assert not path.exists()


def test_a_save_says_that_it_begins_unless_the_last_one_was_quick(tmp_path):
    path = tmp_path / "metrics.jsonl"
    watcher = Watcher({"RABASKA_METRICS": str(path)})
    watcher.count.steps = 3

    for seconds in (0.01, 0.01, 2.0, 2.0, 0.01):
        watcher.save_begins()
        watcher.saved(seconds)

    told = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("save", "over") for line in told] == ["begins", "over"] * 3
    assert [line.get("saving") for line in told] == [None, 0.01, 2.02, 4.02, 4.02, 4.03]


def dump(content, path):
    with open(path, "wb") as stream:
        pickle.dump(content, stream)


def save_with(save, *given, **named):
    return whole(save, 1, "path", lambda *_: None)(*given, **named)


def test_a_save_replaces_the_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "model.pt"
    target.write_bytes(b"before")
    target.chmod(0o600)

    save_with(dump, {"step": 1}, target)
    save_with(dump, content={"step": 2}, path=str(tmp_path / "other.pt"))

    assert pickle.loads(target.read_bytes()) == {"step": 1}
    assert target.stat().st_mode & 0o777 == 0o600
    assert pickle.loads((tmp_path / "other.pt").read_bytes()) == {"step": 2}
    assert sorted(os.listdir(tmp_path)) == ["model.pt", "other.pt"]


def test_a_save_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "model.pt"
    target.write_bytes(b"before")

    with pytest.raises(Exception, match="pickle"):
        save_with(dump, lambda: None, target)

    assert target.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["model.pt"]


def test_a_flood_of_small_new_files_does_not_wait_for_the_disk(tmp_path, monkeypatch):
    """Thousands of arrays that are data are saved by the functions that save checkpoints."""
    waited = []
    monkeypatch.setattr(os, "fsync", waited.append)
    save = whole(dump, 1, "path", lambda *_: None)

    for number in range(200):
        save(number, tmp_path / f"{number}.pkl")
    flood = len(waited)
    save(bytes(2_000_000), tmp_path / "large.pkl")
    save("anew", tmp_path / "0.pkl")

    assert flood < 200
    assert len(waited) - flood == 4  # each file, and its folder
    assert pickle.loads((tmp_path / "199.pkl").read_bytes()) == 199
    assert len(os.listdir(tmp_path)) == 201


def test_small_files_that_come_now_and_then_are_durable():
    clock = Clock()
    sparing = Sparing(clock)

    checkpoint = [sparing.worth(1000, False) for _ in range(20)]
    flood = [sparing.worth(1000, False) for _ in range(1000)]
    clock.now += 60
    later = [sparing.worth(1000, False) for _ in range(20)]

    assert all(checkpoint)
    assert not any(flood)
    assert all(later)


def test_a_saver_that_adds_an_ending_keeps_it(tmp_path):
    numpy = pytest.importorskip("numpy")
    savez = whole(numpy.savez, 0, "file", lambda *_: None)

    savez(tmp_path / "weights", a=numpy.zeros(3))

    assert os.listdir(tmp_path) == ["weights.npz"]
    assert numpy.load(tmp_path / "weights.npz")["a"].shape == (3,)


def test_a_link_is_followed_and_a_device_is_left_alone(tmp_path):
    (tmp_path / "epoch-1.pt").write_bytes(b"before")
    (tmp_path / "last.pt").symlink_to("epoch-1.pt")

    save_with(dump, 1, tmp_path / "last.pt")
    save_with(dump, 2, "/dev/null")

    assert (tmp_path / "last.pt").is_symlink()
    assert pickle.loads((tmp_path / "epoch-1.pt").read_bytes()) == 1


def test_a_file_that_the_program_may_not_write_is_left_alone(ordinary_folder):
    target = ordinary_folder / "precious.pt"
    target.write_bytes(b"before")
    target.chmod(0o444)

    with pytest.raises(PermissionError) as refused:
        save_with(dump, 1, target)

    assert refused.value.filename == str(target)
    assert target.read_bytes() == b"before"
    assert os.listdir(ordinary_folder) == ["precious.pt"]


def test_a_file_is_written_in_a_folder_that_takes_no_other(ordinary_folder):
    target = ordinary_folder / "model.pt"
    target.write_bytes(b"before")
    ordinary_folder.chmod(0o555)

    save_with(dump, 1, target)

    ordinary_folder.chmod(0o755)
    assert pickle.loads(target.read_bytes()) == 1
    assert os.listdir(ordinary_folder) == ["model.pt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of two users")
def test_a_file_of_somebody_else_stays_theirs(tmp_path):
    target = tmp_path / "model.pt"
    target.write_bytes(b"before")
    os.chown(target, 12345, 54321)
    target.chmod(0o660)

    save_with(dump, 1, target)  # as root, who may give it away
    found = target.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12345, 54321, 0o660)

    target.chmod(0o666)
    tmp_path.chmod(0o777)
    for above in (path for path in tmp_path.parents if "pytest-" in str(path)):
        above.chmod(0o755)
    os.seteuid(65534)
    try:
        save_with(dump, 2, target)
    finally:
        os.seteuid(0)
    found = target.stat()
    assert (found.st_uid, found.st_gid) == (12345, 54321)
    assert pickle.loads(target.read_bytes()) == 2


def test_a_second_name_keeps_the_older_save(tmp_path):
    """As programs do that keep `best.pt` as another name of `last.pt`."""
    save_with(dump, 1, tmp_path / "last.pt")
    os.link(tmp_path / "last.pt", tmp_path / "best.pt")

    save_with(dump, 2, tmp_path / "last.pt")

    assert pickle.loads((tmp_path / "best.pt").read_bytes()) == 1
    assert pickle.loads((tmp_path / "last.pt").read_bytes()) == 2


def test_a_link_to_a_file_that_may_not_be_written_is_left_alone(ordinary_folder):
    (ordinary_folder / "release.pt").write_bytes(b"before")
    (ordinary_folder / "release.pt").chmod(0o400)
    (ordinary_folder / "last.pt").symlink_to("release.pt")

    with pytest.raises(PermissionError):
        save_with(dump, 1, ordinary_folder / "last.pt")

    assert (ordinary_folder / "release.pt").read_bytes() == b"before"


def test_attributes_of_a_file_are_kept(tmp_path):
    target = tmp_path / "model.pt"
    target.write_bytes(b"before")
    try:
        os.setxattr(target, "user.origin", b"mine")
    except OSError:
        pytest.skip("this file system has no attributes")

    save_with(dump, 1, target)

    assert os.getxattr(target, "user.origin") == b"mine"


def test_a_missing_folder_is_the_programs_own_error(tmp_path):
    with pytest.raises(FileNotFoundError) as problem:
        save_with(dump, 1, tmp_path / "nowhere" / "model.pt")

    assert problem.value.filename == str(tmp_path / "nowhere" / "model.pt")


SAVES_FOR_EVER = """
import pickle, sys
from rabaska.training.watching.whole_saves import whole

def dump(content, path):
    with open(path, "wb") as stream:
        pickle.dump(content, stream)

save = whole(dump, 1, "path", lambda *_: None)
number = 0
while True:
    number += 1
    save((number, b"x" * 2_000_000), sys.argv[1])
    print(number, flush=True)
"""


def test_a_program_killed_while_saving_leaves_a_whole_file(tmp_path):
    target, chance = tmp_path / "model.pt", random.Random(5)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVES_FOR_EVER, target],
            env={**os.environ, "PYTHONPATH": str(SOURCES)}, stdout=subprocess.PIPE,
        )  # fmt: skip
        process.stdout.readline()
        time.sleep(chance.random() * 0.05)

        process.send_signal(signal.SIGKILL)
        process.communicate()

        number, content = pickle.loads(target.read_bytes())
        assert number >= 1
        assert len(content) == 2_000_000


def python(code, folder, *options, **variables):
    """Run `code` in a Python of its own, watched."""
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(FIRST), str(folder), str(SOURCES)]),
        "RABASKA_WATCH": "1", "RABASKA_METRICS": str(folder / "metrics.jsonl"),
        "RABASKA_JOB": "1", **variables,
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *options, "-c", code], env=environment, cwd=folder, check=False,
        capture_output=True, text=True,
    )  # fmt: skip


SHOWS = "import sys; print('SITE' in vars(sys.modules.get('sitecustomize')), sys.path[1:3])"


def test_the_sites_own_sitecustomize_runs_and_our_folder_is_off_the_path(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("SITE = True\n")

    said = python(SHOWS, tmp_path)

    assert said.stdout.startswith("True")
    assert "watching" not in said.stdout
    assert said.stderr == ""


def test_a_site_whose_sitecustomize_fails_is_told_as_ever(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("1 / 0\n")

    said = python("print('goes on')", tmp_path)

    assert said.stdout == "goes on\n"
    assert "ZeroDivisionError" in said.stderr


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_takes_no_advice_runs_as_if_we_were_not_there(tmp_path, option):
    said = python("import sys; print([type(each).__name__ for each in sys.meta_path])", tmp_path,
                  option)  # fmt: skip

    assert said.returncode == 0
    assert "Waiting" not in said.stdout


def test_switched_off_it_waits_for_nothing(tmp_path):
    said = python("import sys; print(sys.meta_path)", tmp_path, RABASKA_WATCH="0")

    assert "Waiting" not in said.stdout


ODD = """
import sys, types
module = types.ModuleType("numpy")
module.savez = 5                       # no function at all
sys.modules["numpy"] = module          # and imported by nobody
sys.settrace(lambda *given: None)
sys.stdout.write("as ever")
"""


def test_a_program_that_does_odd_things_is_not_broken(tmp_path):
    said = python(ODD, tmp_path)

    assert (said.returncode, said.stdout, said.stderr) == (0, "as ever", "")


SAVER = """
import os
def save_file(tensors, filename):
    print("partial" if ".partial" in str(filename) else "plain", end=" ")
    open(filename, "w").close()
"""
WAYS = {
    "looked for first": """
import importlib.util
assert importlib.util.find_spec("safetensors.torch")
assert importlib.util.find_spec("safetensors.torch")
from safetensors.torch import save_file
""",
    "by name": """
import importlib
save_file = importlib.import_module("safetensors.torch").save_file
""",
    "under another name": "import safetensors.torch as st; save_file = st.save_file",
    "by pkgutil": """
import pkgutil, safetensors
[name for _, name, _ in pkgutil.walk_packages(safetensors.__path__, "safetensors.")]
save_file = pkgutil.resolve_name("safetensors.torch:save_file") \\
    if hasattr(pkgutil, "resolve_name") else __import__("safetensors.torch").torch.save_file
""",
    "loaded again": """
import importlib, safetensors.torch
save_file = importlib.reload(safetensors.torch).save_file
""",
    "removed and imported again": """
import sys, safetensors.torch
del sys.modules["safetensors.torch"]
from safetensors.torch import save_file
""",
    "from its spec": """
import importlib.util
spec = importlib.util.find_spec("safetensors.torch")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
save_file = module.save_file
""",
    "lazily": """
import importlib.util, sys
spec = importlib.util.find_spec("safetensors.torch")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = importlib.util.module_from_spec(spec)
sys.modules["safetensors.torch"] = module
spec.loader.exec_module(module)
save_file = module.save_file
""",
    "after it failed": """
import os
os.environ["FAILS"] = "1"
try:
    import safetensors.torch
except ZeroDivisionError:
    del os.environ["FAILS"]
from safetensors.torch import save_file
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_watched_however_it_is_imported(tmp_path, way):
    (tmp_path / "safetensors").mkdir()
    (tmp_path / "safetensors" / "__init__.py").write_text("")
    fails = 'import os\nif "FAILS" in os.environ: 1 / 0\n'
    (tmp_path / "safetensors" / "torch.py").write_text(fails + SAVER)

    said = python(f"{WAYS[way]}\nsave_file({{}}, 'x.safetensors')", tmp_path)

    assert (said.stdout, said.stderr) == ("partial ", "")
    assert (tmp_path / "x.safetensors").exists()


FAKE = """
class DataLoader:
    pass
"""


def test_what_goes_wrong_with_us_is_noted_and_passed_over(tmp_path):
    """A PyTorch of another shape than we know."""
    for name in ("torch", "torch/utils", "torch/utils/data"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "torch/utils/data/dataloader.py").write_text(FAKE)

    said = python("from torch.utils.data.dataloader import DataLoader; print('goes on')", tmp_path)

    assert (said.stdout, said.stderr) == ("goes on\n", "")
    noted = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert "_BaseDataLoaderIter" in noted["off"]


PYTHONS = interpreters()


@pytest.mark.pythons
@pytest.mark.parametrize("interpreter", PYTHONS.values(), ids=map("{0[0]}.{0[1]}".format, PYTHONS))
def test_every_python_starts_as_ever(tmp_path, interpreter):
    (tmp_path / "sitecustomize.py").write_text("SITE = True\n")
    environment = {"PYTHONPATH": f"{FIRST}{os.pathsep}{tmp_path}", "RABASKA_WATCH": "1"}

    said = subprocess.run(
        [interpreter, "-W", "error", "-c", SHOWS], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert said.stdout.startswith("True")
    assert said.stderr == ""


def noted(folder: Path) -> list[tuple[str, int]]:
    text = (folder / "saved.jsonl").read_text() if (folder / "saved.jsonl").exists() else ""
    return [(told["path"], told["steps"]) for told in map(json.loads, text.splitlines())]


def a_job(folder: Path) -> Watcher:
    for name in ("output", "checkpoints", "local/code"):
        (folder / name).mkdir(parents=True)
    return Watcher(
        {
            "RABASKA_SAVED": str(folder / "saved.jsonl"), "RABASKA_JOB": "2",
            "RABASKA_OUTPUT": str(folder / "output"), "RABASKA_LOCAL": str(folder / "local"),
            "RABASKA_CHECKPOINTS": str(folder / "checkpoints"),
        }
    )  # fmt: skip


def test_what_the_program_saves_after_its_first_step_is_noted_in_order(tmp_path: Path) -> None:
    watcher = a_job(tmp_path)
    save = whole(dump, 1, "path", watcher.saved)

    save({}, tmp_path / "output/before.pt")
    watcher.count.steps = 3
    save({}, tmp_path / "output/last.pt")
    save({}, tmp_path / "local/code/best.pt")
    (tmp_path / "local/code/linked.pt").symlink_to(tmp_path / "checkpoints/real.pt")
    watcher.count.steps = 4
    save({}, tmp_path / "local/code/linked.pt")
    save({}, tmp_path / "elsewhere.pt")
    save({}, tmp_path / "output/last.pt")
    with pytest.raises(OSError, match="No such file"):
        save({}, tmp_path / "output/no/folder.pt")

    assert noted(tmp_path) == [
        ("output/last.pt", 3), ("output/best.pt", 3), ("checkpoints/real.pt", 4),
        ("output/last.pt", 4),
    ]  # fmt: skip


def test_an_open_file_is_noted_once_for_all_that_is_written_to_it(tmp_path: Path) -> None:
    watcher = a_job(tmp_path)
    save = whole(pickle.dump, 1, "file", watcher.saved)
    watcher.count.steps = 3

    with (tmp_path / "output/last.pt").open("wb") as stream:
        save(1, stream)
        save(2, stream)
    save(3, io.BytesIO())

    assert noted(tmp_path) == [("output/last.pt", 3)]
    assert not watcher.count.off


def test_a_note_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    watcher = a_job(tmp_path)
    watcher.count.steps = 3
    (tmp_path / "saved.jsonl").mkdir()

    whole(dump, 1, "path", watcher.saved)({}, tmp_path / "output/last.pt")

    assert (tmp_path / "output/last.pt").exists()
    assert not watcher.count.off


@pytest.mark.parametrize(("length", "batch_size"), [(10**10, None), (10**8, 100), (10**6, 5000)])
def test_a_length_that_stands_for_no_end_is_no_epoch(length, batch_size):
    iterator = Iterator(length)
    iterator._index_sampler = type("Sampler", (), {"batch_size": batch_size})()

    assert Count().sweep(iterator, 0.0).length is None
