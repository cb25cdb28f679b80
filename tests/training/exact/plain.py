"""A training with everything that usually breaks exactness, in the four lines of a session."""

import argparse
import hashlib
import os
import random
import signal
import time
from datetime import timedelta

import numpy as np
import torch
from torch import nn

import rabaska.training


class Blobs(torch.utils.data.Dataset):
    """Points around ten centres, augmented with all three generators."""

    def __init__(self, size, pause):
        generator = torch.Generator().manual_seed(5)
        self.labels = torch.randint(0, 10, (size,), generator=generator)
        centres = torch.randn(10, 32, generator=generator)
        self.points = centres[self.labels] + torch.randn(size, 32, generator=generator)
        self.pause = pause

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        point = self.points[place] * (0.9 + 0.2 * random.random())
        point = point + 0.1 * torch.randn(32) + float(np.random.normal(0, 0.1))
        time.sleep(self.pause)
        return point, self.labels[place]


def trained(words):
    """The weights' SHA-256 after a training that may have been interrupted any number of times."""
    torch.manual_seed(1)
    model = wrapped(network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    scaler = torch.amp.GradScaler("cpu")
    dataset = Blobs(words.samples, words.pause)
    every = words.save_every or timedelta(seconds=0.05)

    with rabaska.training.session(
        words.folder, save_every=every, model=model, optimizer=optimizer, scheduler=scheduler,
        scaler=scaler,
    ) as session:  # fmt: skip
        batches = session.loader(
            dataset, batch_size=words.batch_size, epochs=words.epochs, workers=words.workers
        )
        for points, labels in batches:
            loss = nn.functional.cross_entropy(model(points), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            session.step(loss=loss.item())
            if session.steps == words.stop_after and not session.resumed:
                interrupt(words)
            if session.steps % 7 == 0:
                torch.rand(1)  # an evaluation that draws at random
    return digest(model)


def interrupt(words):
    os.kill(os.getpid(), getattr(signal, f"SIG{words.by}"))


def network():
    return nn.Sequential(
        nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10)
    )


def wrapped(model):
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return model
    torch.distributed.init_process_group("gloo")
    return nn.parallel.DistributedDataParallel(model)


def digest(model):
    found = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        found.update(name.encode() + value.detach().contiguous().numpy().tobytes())
    return found.hexdigest()


def parsed(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--max-steps", type=int, default=-1, help="where a framework has them")
    parser.add_argument("--end-after", type=int, help="where a framework is told to end early")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--stop-after", type=int, default=None)
    parser.add_argument("--by", default="TERM", help="the signal that the program sends itself")
    parser.add_argument("--pause", type=float, default=0.0)
    return parser.parse_args(argv)


def main(argv=None):
    words = parsed(argv)
    torch.set_num_threads(1)
    weights = trained(words)
    if os.environ.get("RANK", "0") == "0":
        leave(words.folder, weights)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # else its threads may abort the process


def leave(folder, weights):
    with open(os.path.join(folder, "weights"), "w") as stream:
        stream.write(weights)


if __name__ == "__main__":
    main()
