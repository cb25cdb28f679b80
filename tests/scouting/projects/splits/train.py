import argparse
import os

import torch
from torch.utils.tensorboard import SummaryWriter

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-dir", type=str, default="pictures/train")
    parser.add_argument("--val-dir", type=str, default="pictures/val")
    parser.add_argument("--model", choices=["small", "large"], required=True)
    parser.add_argument("--token", required=True)
    args = parser.parse_args()
    writer = SummaryWriter()
    os.makedirs("saved", exist_ok=True)
    for epoch in range(3):
        writer.add_scalar("epoch", epoch)
        torch.save({}, "saved/model-%03d.pt" % epoch)
