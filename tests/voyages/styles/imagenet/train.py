"""In the style of PyTorch's ImageNet example, which resumes."""
import argparse
import os
import shutil

import job
import torch

parser = argparse.ArgumentParser(description='PyTorch ImageNet Training')
parser.add_argument('--epochs', default=14, type=int, metavar='N')
parser.add_argument('--start-epoch', default=0, type=int, metavar='N')
parser.add_argument('--resume', default='', type=str, metavar='PATH')


def main():
    args = parser.parse_args()
    main_worker(args)


def main_worker(args):
    model = torch.Linear()
    optimizer = torch.SGD(model)
    best_acc1 = 0
    if args.resume:
        if os.path.isfile(args.resume):
            print("=> loading checkpoint '{}'".format(args.resume))
            checkpoint = torch.load(args.resume)
            args.start_epoch = checkpoint['epoch']
            best_acc1 = checkpoint['best_acc1']
            model.load_state_dict(checkpoint['state_dict'])
            optimizer.load_state_dict(checkpoint['optimizer'])
        else:
            print("=> no checkpoint found at '{}'".format(args.resume))
    for epoch in range(args.start_epoch, args.epochs):
        for i in range(3):
            optimizer.step()
            print('Epoch: [{}][{}/{}]\tLoss {:.4e}'.format(epoch, i, 3, 1 / (epoch + 1)))
        save_checkpoint({
            'epoch': epoch + 1, 'state_dict': model.state_dict(), 'best_acc1': best_acc1,
            'optimizer': optimizer.state_dict(),
        }, True)
        job.spend()


def save_checkpoint(state, is_best, filename='checkpoint.pth.tar'):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, 'model_best.pth.tar')


if __name__ == '__main__':
    main()
