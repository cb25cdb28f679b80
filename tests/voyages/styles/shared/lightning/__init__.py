"""As much of Lightning as these programs use."""
import os
import pickle

import job


class Trainer:
    def __init__(self, max_epochs, default_root_dir):
        self.max_epochs, self.root = max_epochs, default_root_dir

    def fit(self, model, ckpt_path=None):
        first = 0
        if ckpt_path:
            with open(ckpt_path, "rb") as stream:
                state = pickle.load(stream)
            first, model.weight = state["epoch"], state["weight"]
        for epoch in range(first, self.max_epochs):
            model.weight += 1.0
            print(f"Epoch {epoch}: 100%|##| 10/10 [00:00<00:00, train_loss={1 / (epoch + 1):.3f}]")
            with open(os.path.join(self.root, f"epoch={epoch}.ckpt"), "wb") as stream:
                pickle.dump({"epoch": epoch + 1, "weight": model.weight}, stream)
            job.spend()
