"""In the style of a well-known CIFAR-10 repository: no main guard, --resume is a switch."""

import argparse
import os

import torch
import torchvision
from models import ResNet18

parser = argparse.ArgumentParser(description="PyTorch CIFAR10 Training")
parser.add_argument("--lr", default=0.1, type=float, help="learning rate")
parser.add_argument("--resume", "-r", action="store_true", help="resume from checkpoint")
args = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
trainset = torchvision.datasets.CIFAR10(root="./data", train=True, download=True)
net = ResNet18().to(device)
start_epoch = 0

if args.resume:
    assert os.path.isdir("checkpoint"), "Error: no checkpoint directory found!"
    checkpoint = torch.load("./checkpoint/ckpt.pth")
    net.load_state_dict(checkpoint["net"])
    start_epoch = checkpoint["epoch"]


def test(epoch):
    print("\nEpoch: %d" % epoch)
    state = {"net": net.state_dict(), "epoch": epoch}
    if not os.path.isdir("checkpoint"):
        os.mkdir("checkpoint")
    torch.save(state, "./checkpoint/ckpt.pth")


for epoch in range(start_epoch, start_epoch + 200):
    test(epoch)
