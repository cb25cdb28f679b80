"""In the style of the PyTorch ImageNet example: positional data, checkpoint.pth.tar."""

import argparse
import os
import shutil

import torch
import torchvision.datasets as datasets
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description="PyTorch ImageNet Training")
parser.add_argument("data", metavar="DIR", nargs="?", default="imagenet", help="path to dataset")
parser.add_argument("-a", "--arch", default="resnet18", choices=["resnet18", "resnet50"])
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("--start-epoch", default=0, type=int)
parser.add_argument("--resume", default="", type=str, metavar="PATH", help="path to checkpoint")
parser.add_argument("-e", "--evaluate", action="store_true")
parser.add_argument("--pretrained", action="store_true")


def main():
    args = parser.parse_args()
    model = DistributedDataParallel(torch.nn.Linear(1, 1).cuda())
    if args.resume and os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume)
        args.start_epoch = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
    train_set = datasets.ImageFolder(os.path.join(args.data, "train"))
    for epoch in range(args.start_epoch, args.epochs):
        print("Epoch: [{0}][{1}/{2}]".format(epoch, 0, len(train_set)))
        save_checkpoint({"epoch": epoch, "state_dict": model.state_dict()}, False)


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


if __name__ == "__main__":
    main()
