"""A small training with a bottleneck of choice: how long each part of a step takes is an option.

The GPU is one that the tests make: the program says in a file how much of the time it was used.
"""

import argparse
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
for name in ("decode", "read", "compute", "python", "save", "log", "validate", "start"):
    parser.add_argument("--" + name, type=float, default=0.0, help="seconds")
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--persistent", type=int, default=0)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--seconds", type=float, default=4.0)
parser.add_argument("--epoch", type=int, default=10**6, help="batches")
for name in ("save-every", "log-every", "eval-every"):
    parser.add_argument("--" + name, type=int, default=1)
parser.add_argument("--slow-rank", type=float, default=0.0)
parser.add_argument("--slow-data", type=float, default=0.0)
parser.add_argument("--gpu-file", help="where to tell how much of the time the GPU is used")
asked = parser.parse_args()
rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def busy(seconds):
    """Processor time: it takes longer where others have the processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Samples(Dataset):
    def __init__(self, decode, read, count):
        self.decode, self.read, self.count = decode, read, count

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        if self.read:
            time.sleep(self.read)  # as a file server that takes its time
        if self.decode:
            busy(self.decode)
        return torch.ones(8)


def main():
    torch.set_num_threads(1)
    if size > 1:
        torch.distributed.init_process_group(
            "gloo", init_method="file://" + os.path.abspath("meeting"), rank=rank, world_size=size
        )
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    read = asked.read + (asked.slow_data if rank == size - 1 else 0.0)
    loader = DataLoader(
        Samples(asked.decode, read, asked.epoch * asked.batch_size),
        asked.batch_size,
        num_workers=asked.workers,
        persistent_workers=bool(asked.persistent),
    )
    held_out = DataLoader(Samples(0.0, asked.validate / 8, 8), 4)
    tracker = None
    if asked.log:
        from tensorboardX.writer import SummaryWriter

        tracker = SummaryWriter(asked.log)
    step, began = 0, None
    while True:
        for batch in loader:
            began = time.perf_counter() if began is None else began
            if asked.slow_rank and rank == size - 1:
                time.sleep(asked.slow_rank)
            loss = model(batch).mean()
            time.sleep(asked.compute * asked.batch_size)  # as if a GPU did it
            loss.backward()
            if size > 1:
                for parameter in model.parameters():
                    torch.distributed.all_reduce(parameter.grad)
            optimizer.step()
            if asked.python:
                busy(asked.python)
            step += 1
            if tracker and step % asked.log_every == 0:
                tracker.add_scalar("loss", 1.0, step)
            if asked.save and step % asked.save_every == 0:
                torch.save(Slow(asked.save), "checkpoint.pt")
            if asked.validate and step % asked.eval_every == 0:
                for one in held_out:
                    model(one)
            if asked.gpu_file and step % 5 == 0:
                used = asked.compute * asked.batch_size * step / (time.perf_counter() - began)
                with open(asked.gpu_file + ".new", "w") as stream:
                    stream.write(f"{100 * used:.0f} 90000 45 1410 0\n")
                os.replace(asked.gpu_file + ".new", asked.gpu_file)
            over = torch.tensor([float(time.perf_counter() - began > asked.seconds)])
            if size > 1:
                torch.distributed.broadcast(over, 0)
            if over.item():
                print("samples/s", step * asked.batch_size / (time.perf_counter() - began))
                return
        optimizer.zero_grad()


class Slow:
    """What takes its time to be saved."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __reduce__(self):
        time.sleep(self.seconds)
        return (float, (1.0,))


if __name__ == "__main__":
    sys.exit(main())
