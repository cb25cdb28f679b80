"""In the style of PyTorch's MNIST example: it saves, and can load nothing."""
import argparse

import job
import torch


def train(args, model, optimizer, epoch):
    for batch in range(0, 10, 5):
        optimizer.step()
        if batch % args.log_interval == 0:
            print('Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}'.format(
                epoch, batch, 10, 10. * batch, 1 / epoch))


def main():
    parser = argparse.ArgumentParser(description='PyTorch MNIST Example')
    parser.add_argument('--epochs', type=int, default=14, metavar='N')
    parser.add_argument('--log-interval', type=int, default=5, metavar='N')
    parser.add_argument('--save', type=str, default='model.pt', help='path to save the final model')
    args = parser.parse_args()
    model = torch.Linear()
    optimizer = torch.SGD(model)
    for epoch in range(1, args.epochs + 1):
        train(args, model, optimizer, epoch)
        torch.save(model.state_dict(), args.save)
        job.spend()


if __name__ == '__main__':
    main()
