import argparse
import os

import torch

import tools


def get_args():
    parser = argparse.ArgumentParser("rings")
    parser.add_argument("--epochs", default=100, type=int)
    parser.add_argument("--output_dir", default=".", help="Path to save logs and checkpoints.")
    return parser


def train_rings(args):
    student = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(student.parameters())
    to_restore = {"epoch": 0}
    tools.restart_from_checkpoint(
        os.path.join(args.output_dir, "checkpoint.pth"),
        run_variables=to_restore,
        student=student,
        optimizer=optimizer,
    )
    start_epoch = to_restore["epoch"]
    for epoch in range(start_epoch, args.epochs):
        loss = student(torch.rand(4, 2)).mean()
        loss.backward()
        optimizer.step()
        state = {"student": student.state_dict(), "epoch": epoch + 1}
        torch.save(state, os.path.join(args.output_dir, "checkpoint.pth"))


if __name__ == "__main__":
    train_rings(get_args().parse_args())
