"""The training of plain.py, written for the Trainer of Hugging Face."""

import json
import os
import sys
import tempfile
import warnings

import plain
import torch
import transformers
from torch import nn

from rabaska.training.huggingface import train

warnings.simplefilter("ignore")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = plain.network()

    def forward(self, points, labels):
        logits = self.net(points)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Named(plain.Blobs):
    def __getitem__(self, place):
        points, labels = super().__getitem__(place)
        return {"points": points, "labels": labels}


class Stop(transformers.TrainerCallback):
    def __init__(self, words):
        self.words = words

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.words.stop_after:
            plain.interrupt(self.words)
        if state.global_step == self.words.end_after:
            control.should_training_stop = True


def main():
    words = plain.parsed()
    torch.manual_seed(1)
    model = Model()
    with tempfile.TemporaryDirectory() as output:
        arguments = transformers.TrainingArguments(
            output, num_train_epochs=words.epochs, per_device_train_batch_size=words.batch_size,
            dataloader_num_workers=words.workers, save_strategy="no", logging_steps=1,
            report_to="none", use_cpu=True, disable_tqdm=True, learning_rate=1e-2,
            max_steps=words.max_steps,
        )  # fmt: skip
        trainer = transformers.Trainer(
            model, arguments, train_dataset=Named(words.samples, words.pause),
            callbacks=[Stop(words)],
        )  # fmt: skip
        torch.set_num_threads(1)
        train(trainer, folder=words.folder, save_every=words.save_every)
    losses = [
        {name: line[name] for name in ("step", "epoch", "loss", "grad_norm")}
        for line in trainer.state.log_history if "loss" in line
    ]  # fmt: skip
    with open(os.path.join(words.folder, "metrics.jsonl"), "w") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in losses)
    plain.leave(words.folder, plain.digest(model))


if __name__ == "__main__":
    sys.exit(main())
