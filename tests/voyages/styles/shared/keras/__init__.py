"""As much of Keras as these programs use."""
import os
import pickle

import job


class BackupAndRestore:
    def __init__(self, backup_dir):
        self.path = os.path.join(backup_dir, "training_backup.pkl")

    def first_epoch(self, model):
        if not os.path.exists(self.path):
            return 0
        with open(self.path, "rb") as stream:
            first, model.weight = pickle.load(stream)
        return first

    def after(self, epoch, model):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "wb") as stream:
            pickle.dump((epoch + 1, model.weight), stream)


class Model:
    weight = 0.0

    def fit(self, epochs, callbacks):
        first = max([each.first_epoch(self) for each in callbacks], default=0)
        for epoch in range(first, epochs):
            self.weight += 1.0
            print(f"Epoch {epoch + 1}/{epochs}")
            print(f"10/10 - 0s - loss: {1 / (epoch + 1):.4f}")
            for each in callbacks:
                each.after(epoch, self)
            job.spend()
