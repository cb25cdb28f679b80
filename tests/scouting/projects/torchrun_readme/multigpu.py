"""In the style of a tutorial: torchrun says which process it is."""
import argparse
import os

import torch
from torch.distributed import init_process_group


class Trainer:
    def __init__(self, save_every, snapshot_path):
        self.rank = int(os.environ["LOCAL_RANK"])
        self.save_every = save_every
        self.epochs_run = 0
        self.snapshot_path = snapshot_path
        if os.path.exists(snapshot_path):
            snapshot = torch.load(snapshot_path)
            self.epochs_run = snapshot["EPOCHS_RUN"]

    def train(self, max_epochs):
        for epoch in range(self.epochs_run, max_epochs):
            print(f"[GPU{self.rank}] Epoch {epoch} | Batchsize: 32")
            if epoch % self.save_every == 0:
                torch.save({"EPOCHS_RUN": epoch}, self.snapshot_path)


def main(save_every, total_epochs, snapshot_path="snapshot.pt"):
    init_process_group(backend="gloo")
    Trainer(save_every, snapshot_path).train(total_epochs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="simple distributed training job")
    parser.add_argument("total_epochs", type=int, help="Total epochs to train the model")
    parser.add_argument("save_every", type=int, help="How often to save a snapshot")
    args = parser.parse_args()
    main(args.save_every, args.total_epochs)
