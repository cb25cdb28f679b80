"""In the style of the PyTorch MNIST example: saves once, at the end, and only when told to."""

import argparse

import torch
import torch.optim as optim
from torchvision import datasets


def train(args, model, device, train_loader, optimizer, epoch):
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = model(data.to(device), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(train_loader)}] Loss: {loss.item():.6f}")


def main():
    parser = argparse.ArgumentParser(description="PyTorch MNIST Example")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N")
    parser.add_argument("--epochs", type=int, default=14, metavar="N")
    parser.add_argument("--no-accel", action="store_true", help="disables accelerator")
    parser.add_argument("--log-interval", type=int, default=10, metavar="N")
    parser.add_argument("--save-model", action="store_true", help="For Saving the current Model")
    args = parser.parse_args()
    dataset1 = datasets.MNIST("../data", train=True, download=True)
    model = torch.nn.Linear(1, 1)
    optimizer = optim.Adadelta(model.parameters())
    for epoch in range(1, args.epochs + 1):
        train(args, model, "cpu", dataset1, optimizer, epoch)
    if args.save_model:
        torch.save(model.state_dict(), "mnist_cnn.pt")


if __name__ == "__main__":
    main()
