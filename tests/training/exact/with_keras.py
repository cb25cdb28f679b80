"""The training of plain.py, written for Keras on PyTorch."""

import hashlib
import os
import sys

os.environ["KERAS_BACKEND"] = "torch"

import keras
import plain
import torch

from rabaska.training.keras import fit


class Stop(keras.callbacks.Callback):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.left = words.stop_after

    def on_train_batch_end(self, batch, logs=None):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                plain.interrupt(self.words)


def main():
    words = plain.parsed()
    torch.set_num_threads(1)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((32,)),
            keras.layers.Dense(64),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    fit(
        model, plain.Blobs(words.samples, words.pause), words.batch_size, words.epochs,
        words.workers, callbacks=[Stop(words)], fit={"verbose": 0},
        folder=words.folder, save_every=words.save_every,
    )  # fmt: skip
    found = hashlib.sha256()
    for weights in model.get_weights():
        found.update(weights.tobytes())
    plain.leave(words.folder, found.hexdigest())


if __name__ == "__main__":
    sys.exit(main())
