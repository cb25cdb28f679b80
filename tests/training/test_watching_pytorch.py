"""Zero-code watching of real programs: PyTorch itself, and what is built on it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parents[2]
SOURCES = REPOSITORY / "src"
FRAMEWORKS = REPOSITORY / ".venv-frameworks" / "bin" / "python"

# Its truth is known: it adds up the time between asking for a batch and getting it.
PLAIN = """
import argparse, time, torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--share", type=float)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--start", default="fork")
parser.add_argument("--epochs", type=int, default=3)
asked = parser.parse_args()

class Slow(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, place):
        time.sleep(0.004 * asked.share * max(1, asked.workers))
        return torch.ones(4)

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 1)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1), torch.optim.Adam(model.parameters())]
    loader = DataLoader(Slow(), 4, num_workers=asked.workers, persistent_workers=asked.workers > 0,
                        multiprocessing_context=asked.start if asked.workers else None)
    held_out = DataLoader(torch.ones(8, 4), 4)
    waited, began = 0.0, time.perf_counter()
    for epoch in range(asked.epochs):
        asking = time.perf_counter()
        batches = iter(loader)
        while True:
            batch = next(batches, None)
            waited += time.perf_counter() - asking
            if batch is None:
                break
            model(batch).sum().backward()
            time.sleep(0.016 * (1 - asked.share))
            for optimizer in optimizers:
                optimizer.step()
            if torch.rand(1) < 0.1:
                [model(x) for x in held_out]
            asking = time.perf_counter()
        torch.save(model.state_dict(), "last.pt")
    print(waited, time.perf_counter() - began)
"""


def run(folder, program, *words, python=sys.executable, **variables):
    (folder / "train.py").write_text(program)
    path = os.pathsep.join([str(SOURCES / "rabaska/training/watching/first"), str(SOURCES)])
    environment = {
        **os.environ, "PYTHONPATH": path, "RABASKA_WATCH": "1", "RABASKA_JOB": "1",
        "RABASKA_METRICS": str(folder / "metrics.jsonl"), "OMP_NUM_THREADS": "1", **variables,
    }  # fmt: skip
    return subprocess.run(
        [python, "train.py", *words], cwd=folder, env=environment, check=False,
        capture_output=True, text=True,
    )  # fmt: skip


def lines(folder):
    path = folder / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(
    ("share", "workers"),
    [("0", ()), ("0.3", ()), ("0.6", ()), ("0.95", ()), ("0.6", ("2", "fork")),
     ("0.6", ("1", "spawn"))],
)  # fmt: skip
def test_the_share_of_waiting_is_the_truth_and_everything_is_counted(tmp_path, share, workers):
    words = ["--workers", workers[0], "--start", workers[1]] if workers else []
    said = run(tmp_path, PLAIN, "--share", share, *words)

    assert said.returncode == 0, said.stderr
    told = lines(tmp_path)[-1]
    assert {line["pid"] for line in lines(tmp_path)} == {told["pid"]}
    assert (told["steps"], told["epochs"], told["batches"], told["total"]) == (90, 3, 90, 3)
    assert (told["length"], told["batch_size"], told["saves"]) == (30, 4, 3)
    assert "off" not in told
    waited, lasted = (float(seconds) for seconds in said.stdout.split())
    assert told["waiting"] / lasted == pytest.approx(waited / lasted, abs=0.02)
    assert sorted(os.listdir(tmp_path)) == ["last.pt", "metrics.jsonl", "train.py"]


ODD = """
import os, sys, torch
from torch.utils.data import DataLoader
import threading

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
sys.stdout = None
sys.settrace(lambda *given: None)
def elsewhere():
    for batch in DataLoader(torch.ones(8, 4)):
        pass
thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
for batch in zip(DataLoader(torch.ones(3, 4)), DataLoader(torch.ones(9, 4))):
    optimizer.step()
with open("object.pt", "wb") as stream:
    torch.save(model.state_dict(), stream)
torch.save(model.state_dict(), "/dev/null")
assert torch.load("object.pt").keys() == model.state_dict().keys()
try:
    torch.save(model.state_dict(), "nowhere/x.pt")
except RuntimeError as problem:
    assert "nowhere does not exist" in str(problem), problem
if os.fork() == 0:
    optimizer.step()
    os._exit(0)
os.wait()
os._exit(7)
"""


def test_an_odd_program_runs_as_it_would_alone(tmp_path):
    said = run(tmp_path, ODD)

    assert (said.returncode, said.stderr) == (7, "")
    assert not any("off" in line for line in lines(tmp_path))


COMPILED = """
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
step = torch.compile(lambda: optimizer.step(), backend="eager")
for batch in torch.utils.data.DataLoader(torch.ones(5, 4)):
    model(batch).sum().backward()
    step() if int(torch.ones(1)) else None
    optimizer.step()
"""


def test_a_step_that_is_compiled_stays_free_of_us(tmp_path):
    said = run(tmp_path, COMPILED)

    assert said.returncode == 0, said.stderr
    assert lines(tmp_path)[-1]["steps"] == 5
    assert "off" not in lines(tmp_path)[-1]


def test_of_several_ranks_the_first_one_writes(tmp_path):
    program = "import subprocess, sys\n" + PLAIN.replace("0.016", "0.001")

    for rank in "01":
        run(tmp_path, program, "--share", "0", RANK=rank)

    assert len({line["pid"] for line in lines(tmp_path)}) == 1


KILLED = """
import torch
state = {"weights": torch.ones(500_000)}
torch.save(state, "last.pt")
print("saved", flush=True)
while True:
    torch.save(state, "last.pt")
"""


def test_a_program_killed_while_it_saves_leaves_a_checkpoint_that_loads(tmp_path):
    import torch

    (tmp_path / "train.py").write_text(KILLED)
    path = os.pathsep.join([str(SOURCES / "rabaska/training/watching/first"), str(SOURCES)])
    process = subprocess.Popen(
        [sys.executable, "train.py"], cwd=tmp_path, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "RABASKA_WATCH": "1"},
    )  # fmt: skip
    process.stdout.readline()

    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert torch.load(tmp_path / "last.pt")["weights"].sum() == 500_000


LIGHTNING = """
import lightning as L, torch
class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, number): return self.layer(batch).sum()
    def validation_step(self, batch, number): return self.layer(batch).sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
data = torch.utils.data.DataLoader(torch.ones(40, 4), 4)
trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False)
trainer.fit(Model(), data, torch.utils.data.DataLoader(torch.ones(8, 4), 4))
"""

HUGGINGFACE = """
import torch
from transformers import Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x): return {"loss": self.layer(x).sum()}
class Data(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, place): return {"x": torch.ones(4)}
asked = TrainingArguments("out", num_train_epochs=3, per_device_train_batch_size=4, use_cpu=True,
                          report_to=[], save_strategy="epoch", eval_strategy="epoch")
Trainer(Model(), asked, train_dataset=Data(), eval_dataset=Data()).train()
"""

KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((40, 4)), numpy.ones(40), batch_size=4, epochs=3, verbose=0,
          validation_data=(numpy.ones((8, 4)), numpy.ones(8)),
          callbacks=[keras.callbacks.ModelCheckpoint("model.keras")])
"""


@pytest.mark.skipif(not FRAMEWORKS.exists(), reason="run `make frameworks`")
@pytest.mark.parametrize(
    ("program", "saves"), [(LIGHTNING, 3), (HUGGINGFACE, 3), (KERAS, 3)],
    ids=["lightning", "huggingface", "keras"],
)  # fmt: skip
def test_frameworks_are_watched_as_they_are(tmp_path, program, saves):
    said = run(tmp_path, program, python=str(FRAMEWORKS))

    assert said.returncode == 0, said.stderr
    told = lines(tmp_path)[-1]
    assert "off" not in told
    assert (told["steps"], told["epochs"], told["total"]) == (30, 3, 3)
    assert told["batches"] == pytest.approx(30, abs=3)  # one of each epoch may be fetched ahead
    assert told["saves"] == saves
    assert not list(tmp_path.rglob("*.partial"))


SAVES_THREE = """
import os, torch
output = os.environ["RABASKA_OUTPUT"]
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for name in ("one", "two", "three"):
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "name": name}, os.path.join(output, name + ".pt"))
# What a program stores besides; the first is downloaded, as far as anybody can tell.
for name in ("net.pth", "embeddings.npz", "cache.pkl"):
    with open(os.path.join(output, name), "wb") as stream:
        stream.write(open(os.path.join(output, "one.pt"), "rb").read() + b".")
"""


def test_the_state_saved_last_comes_before_newer_files_that_the_program_did_not_save(tmp_path):
    from rabaska.node.checkpoints import newest_checkpoint

    (tmp_path / "output").mkdir()
    variables = {
        "RABASKA_OUTPUT": str(tmp_path / "output"), "RABASKA_SAVED": str(tmp_path / "saved.jsonl"),
        "RABASKA_CHECKPOINTS": "", "RABASKA_LOCAL": "",
    }  # fmt: skip

    done = run(tmp_path, SAVES_THREE, **variables)

    assert done.returncode == 0, done.stderr
    found = newest_checkpoint.newest_valid(str(tmp_path), [])
    assert found is not None
    assert found.path == "output/three.pt"
