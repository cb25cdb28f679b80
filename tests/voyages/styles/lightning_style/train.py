"""In the style of Lightning: the path goes to the trainer."""
import argparse

from lightning import Trainer


class Net:
    weight = 0.0


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--max_epochs', type=int, default=14)
    parser.add_argument('--default_root_dir', default='logs')
    parser.add_argument('--ckpt_path', default=None)
    args = parser.parse_args()
    trainer = Trainer(max_epochs=args.max_epochs, default_root_dir=args.default_root_dir)
    trainer.fit(Net(), ckpt_path=args.ckpt_path)
