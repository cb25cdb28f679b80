"""Lies in a folder, and imports the package beside that folder."""
import argparse

from diffuse.loop import run

parser = argparse.ArgumentParser()
parser.add_argument('--save-dir', default='out')
parser.add_argument('--resume')
args = parser.parse_args()
run(args.save_dir, args.resume)
