import argparse

import torch

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", "-m", default="MODEL.pth")
    parser.add_argument("--input", "-i", nargs="+", required=True)
    torch.load(parser.parse_args().model)
