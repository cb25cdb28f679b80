"""Its `--resume` is a switch."""
import argparse
import os

import job
import torch


class Run:
    def __init__(self, folder):
        self.path = os.path.join(folder, 'ckpt.pth')
        self.model = torch.Linear()
        self.optimizer = torch.SGD(self.model)
        self.epoch = 0

    def save(self):
        torch.save({'net': self.model.state_dict(), 'opt': self.optimizer.state_dict(),
                    'epoch': self.epoch}, self.path)

    def load(self):
        state = torch.load(self.path)
        self.model.load_state_dict(state['net'])
        self.optimizer.load_state_dict(state['opt'])
        self.epoch = state['epoch']

    def train(self, epochs):
        while self.epoch < epochs:
            self.optimizer.step()
            self.epoch += 1
            print('Epoch: %d | Loss: %.3f' % (self.epoch, 1 / self.epoch))
            self.save()
            job.spend()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=14)
    parser.add_argument('--save-dir', default='checkpoint')
    parser.add_argument('--resume', '-r', action='store_true', help='resume from checkpoint')
    args = parser.parse_args()
    os.makedirs(args.save_dir, exist_ok=True)
    run = Run(args.save_dir)
    if args.resume:
        run.load()
    run.train(args.epochs)


if __name__ == '__main__':
    main()
