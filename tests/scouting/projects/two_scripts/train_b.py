import argparse

import torch

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--checkpoint", default="checkpoint_b.pt")
    args = parser.parse_args()
    torch.save({}, args.checkpoint)
