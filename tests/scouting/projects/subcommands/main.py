import argparse

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    commands = parser.add_subparsers(dest="command", required=True)
    evaluating = commands.add_parser("evaluate")
    evaluating.add_argument("--checkpoint", required=True)
    training = commands.add_parser("train")
    training.add_argument("--data-root", default="data")
    training.add_argument("--checkpoint-dir", default="ckpt")
    training.add_argument("--resume-from")
    args = parser.parse_args()
    if args.command == "train":
        first = torch.load(args.resume_from)["epoch"] if args.resume_from else 0
        for epoch in range(first, 10):
            torch.save({"epoch": epoch}, args.checkpoint_dir + "/last.pt")


if __name__ == "__main__":
    main()
