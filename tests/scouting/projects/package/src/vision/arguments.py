import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset-root", help="Folder of the images")
    parser.add_argument("--save-dir", default="/tmp/vision")
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--load-checkpoint", dest="load")
    return parser.parse_args()
