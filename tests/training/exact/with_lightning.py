"""The training of plain.py, written for Lightning."""

import sys
import warnings

import plain
import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn

from rabaska.training.lightning import Exact

warnings.simplefilter("ignore")


class Module(LightningModule):
    def __init__(self, words):
        super().__init__()
        self.net = plain.network()
        self.words = words

    def training_step(self, batch, _):
        points, labels = batch
        return nn.functional.cross_entropy(self.net(points), labels)

    def validation_step(self, batch, _):
        torch.rand(1)

    def on_train_batch_end(self, *_):
        if self.global_step == self.words.stop_after:
            plain.interrupt(self.words)
        if self.global_step == self.words.end_after:
            self.trainer.should_stop = True

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


def main():
    words = plain.parsed()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    module = Module(words)
    exact = Exact(
        plain.Blobs(words.samples, words.pause), words.batch_size, words.workers,
        folder=words.folder, save_every=words.save_every,
    )  # fmt: skip
    trainer = Trainer(
        callbacks=[exact], max_epochs=words.epochs if words.max_steps < 0 else -1,
        max_steps=words.max_steps, accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    held_out = torch.utils.data.DataLoader(plain.Blobs(20, 0), batch_size=10)
    trainer.fit(module, exact.batches, held_out)
    plain.leave(words.folder, plain.digest(module))


if __name__ == "__main__":
    sys.exit(main())
