"""Trains a small convolutional network on images of digits, with PyTorch."""

import argparse
import glob
import json
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ImageFolder(Dataset):
    """Grey images of `folder`/<class>/*.pgm with their class numbers."""

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
        return image.float().div(255).view(1, height, width), label


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def train_one_epoch(model, loader, optimizer, device, epoch):
    model.train()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1} step {(epoch + 1) * len(loader)} loss {loss.item():.2f}", flush=True)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        correct += (model(images.to(device)).argmax(dim=1).cpu() == labels).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description="Train a digit classifier")
    parser.add_argument("--data", default="data/digits", help="folder with train/ and test/")
    parser.add_argument("--output", default="output", help="where checkpoints and results go")
    parser.add_argument("--resume", default=None, help="checkpoint to continue from")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    os.makedirs(args.output, exist_ok=True)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the network is small: more threads mostly wait for each other
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set = ImageFolder(os.path.join(args.data, "train"))
    test_set = ImageFolder(os.path.join(args.data, "test"))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)
    print(f"{len(train_set)} training images, {len(test_set)} test images, on {device}")

    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        start_epoch = checkpoint["epoch"] + 1
        print(f"resuming from {args.resume} at epoch {start_epoch + 1}")

    for epoch in range(start_epoch, args.epochs):
        train_one_epoch(model, train_loader, optimizer, device, epoch)
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epoch": epoch,
        }
        torch.save(state, os.path.join(args.output, f"checkpoint-{epoch:03d}.pt"))

    accuracy = evaluate(model, test_loader, device)
    print(f"test accuracy {accuracy:.3f}")
    with open(os.path.join(args.output, "results.json"), "w") as f:
        json.dump({"accuracy": accuracy, "epochs": args.epochs}, f)


if __name__ == "__main__":
    main()
