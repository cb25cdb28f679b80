"""Lightning with argparse: logs and checkpoints go where Lightning likes."""

from argparse import ArgumentParser

import pytorch_lightning as pl
from model import LitModel


def main():
    parser = ArgumentParser()
    parser.add_argument("--data_dir", type=str, default="./datasets/flowers")
    parser.add_argument("--max_epochs", type=int, default=20)
    parser.add_argument("--ckpt_path", type=str, default=None)
    args = parser.parse_args()
    trainer = pl.Trainer(max_epochs=args.max_epochs, accelerator="auto")
    trainer.fit(LitModel(args.data_dir), ckpt_path=args.ckpt_path)


if __name__ == "__main__":
    main()
