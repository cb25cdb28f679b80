"""Started as a module, with its options in another file."""

import torch

from .arguments import parse


def main():
    args = parse()
    first = torch.load(args.load_checkpoint)["iteration"] if args.load_checkpoint else 0
    for iteration in range(first, args.iterations):
        torch.save({"iteration": iteration}, "{}/model_{:07d}.pth".format(args.save_dir, iteration))
        print(f"iter: {iteration}")


if __name__ == "__main__":
    main()
