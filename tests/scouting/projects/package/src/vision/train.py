"""Started as a module, with its options in another file."""

import torch

from .arguments import parse


def main():
    args = parse()
    for iteration in range(args.iterations):
        torch.save({"iteration": iteration}, "{}/model_{:07d}.pth".format(args.save_dir, iteration))
        print(f"iter: {iteration}")


if __name__ == "__main__":
    main()
