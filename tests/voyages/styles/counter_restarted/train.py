"""It restores model and optimizer, tells the epoch, and begins with the first one."""
import argparse
import os

import job
import torch


def load(path, model, optimizer):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint['model'])
    optimizer.load_state_dict(checkpoint['optimizer'])
    print("=> loaded checkpoint '{}' (epoch {})".format(path, checkpoint['epoch']))
    return checkpoint['epoch']


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=14)
    parser.add_argument('--resume', default='', type=str)
    parser.add_argument('--out', default='out')
    args = parser.parse_args()
    model = torch.Linear()
    optimizer = torch.SGD(model)
    if args.resume:
        load(args.resume, model, optimizer)
    for epoch in range(args.epochs):
        optimizer.step()
        print('epoch', epoch, 'loss', 1 / (epoch + 1))
        state = {'epoch': epoch + 1, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}
        torch.save(state, os.path.join(args.out, 'checkpoint.pth.tar'))
        job.spend()


if __name__ == '__main__':
    main()
