'''Simple image classification baseline. Adapted for our lab's flowers data.'''
import argparse
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import Dataset, DataLoader

parser = argparse.ArgumentParser(description='PyTorch Flowers Training')
parser.add_argument('data', metavar='DIR', help='path to dataset')
parser.add_argument('--epochs', default=30, type=int, metavar='N')
parser.add_argument('--batch-size', default=32, type=int)
parser.add_argument('--lr', '--learning-rate', default=0.05, type=float, dest='lr')
parser.add_argument('--resume', default='', type=str, metavar='PATH', help='path to latest checkpoint (default: none)')
parser.add_argument('--save-dir', default='checkpoints', type=str)
parser.add_argument('-j', '--workers', default=0, type=int)


class ImageFolder(Dataset):
    def __init__(self, root):
        self.classes = sorted(d.name for d in os.scandir(root) if d.is_dir())
        self.samples = [(os.path.join(root, c, f), i) for i, c in enumerate(self.classes) for f in sorted(os.listdir(os.path.join(root, c)))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        path, label = self.samples[i]
        x = np.fromfile(path, dtype=np.float32)
        return torch.from_numpy(x), label


def main():
    args = parser.parse_args()
    torch.manual_seed(0)
    train = ImageFolder(os.path.join(args.data, 'train'))
    val = ImageFolder(os.path.join(args.data, 'val'))
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, len(train.classes)))
    opt = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    start_epoch = 0
    if args.resume:
        if os.path.isfile(args.resume):
            print("=> loading checkpoint '{}'".format(args.resume))
            ckpt = torch.load(args.resume)
            start_epoch = ckpt['epoch']
            model.load_state_dict(ckpt['state_dict'])
            opt.load_state_dict(ckpt['optimizer'])
        else:
            print("=> no checkpoint found at '{}'".format(args.resume))
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    os.makedirs(args.save_dir, exist_ok=True)
    for epoch in range(start_epoch, args.epochs):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        correct = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(val, 64))
        print('Epoch: [{}]\tLoss {:.4f}\tAcc {:.3f}'.format(epoch, loss.item(), correct / len(val)))
        time.sleep(1)  # stands for the work of a bigger model
        torch.save({'epoch': epoch + 1, 'state_dict': model.state_dict(), 'optimizer': opt.state_dict()},
                   os.path.join(args.save_dir, 'checkpoint.pth.tar'))


if __name__ == '__main__':
    main()
