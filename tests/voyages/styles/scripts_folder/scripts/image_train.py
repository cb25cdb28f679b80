"""Lies in a folder, imports the package beside it, and counts by the name of its checkpoint."""
import argparse

from diffuse.train_util import TrainLoop

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--save_dir", default="out")
    parser.add_argument("--resume_checkpoint", default="")
    args = parser.parse_args()
    TrainLoop(folder=args.save_dir, resume_checkpoint=args.resume_checkpoint).run_loop()
