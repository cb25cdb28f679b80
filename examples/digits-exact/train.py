"""Trains the network of ../digits-torch so that no interruption shows in its results.

Images are shifted at random, and the network drops features at random: what usually makes a
training that was continued end differently from one that was not.
"""

import argparse
import glob
import hashlib
import os
import random

import torch
from torch import nn
from torch.utils.data import Dataset

import rabaska.training


class ShiftedImages(Dataset):
    """Grey images of `folder`/<class>/*.pgm with their class numbers, each time shifted anew."""

    def __init__(self, folder):
        self.samples = []
        for label, name in enumerate(sorted(os.listdir(folder))):
            for path in sorted(glob.glob(os.path.join(folder, name, "*.pgm"))):
                self.samples.append((path, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as f:
            _, size, _, pixels = f.read().split(b"\n", 3)
        width, height = map(int, size.split())
        image = torch.frombuffer(bytearray(pixels), dtype=torch.uint8)
        image = image.float().div(255).view(1, height, width)
        shifts = random.randint(-2, 2), random.randint(-2, 2)
        return image.roll(shifts, dims=(1, 2)) + 0.05 * torch.randn(image.shape), label


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description="Train a digit classifier, exactly")
    parser.add_argument("--data", default="data/digits", help="folder with train/ and test/")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # the network is small: more threads mostly wait for each other
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    images = ShiftedImages(os.path.join(args.data, "train"))

    with rabaska.training.session(model=model, optimizer=optimizer) as session:
        for batch, labels in session.loader(
            images, batch_size=args.batch_size, epochs=args.epochs, workers=args.workers
        ):
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            session.step(loss=loss.item())
            if session.steps % 20 == 0:
                print(f"step {session.steps} loss {loss.item():.4f}", flush=True)

    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    print(f"weights {hashlib.sha256(weights).hexdigest()[:12]}")


if __name__ == "__main__":
    main()
