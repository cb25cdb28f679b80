"""In the style of a popular U-Net: paths are constants, and --load takes a file."""

import argparse
from pathlib import Path

import torch
import wandb

dir_img = Path("./data/imgs/")
dir_mask = Path("./data/masks/")
dir_checkpoint = Path("./checkpoints/")


def train_model(model, epochs):
    experiment = wandb.init(project="U-Net", resume="allow")
    for epoch in range(1, epochs + 1):
        experiment.log({"epoch": epoch})
        Path(dir_checkpoint).mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), str(dir_checkpoint / "checkpoint_epoch{}.pth".format(epoch)))


def get_args():
    parser = argparse.ArgumentParser(description="Train the UNet on images and target masks")
    parser.add_argument("--epochs", "-e", metavar="E", type=int, default=5)
    parser.add_argument("--load", "-f", type=str, default=False, help="Load model from a .pth file")
    parser.add_argument("--amp", action="store_true", default=False)
    return parser.parse_args()


if __name__ == "__main__":
    args = get_args()
    model = torch.nn.Linear(1, 1)
    if args.load:
        model.load_state_dict(torch.load(args.load))
    train_model(model, args.epochs)
