"""Draws several thousand small images of digits, one folder for each class.

    python make_data.py data/digits

writes data/digits/train/<digit>/*.pgm and data/digits/test/<digit>/*.pgm. The same seed always
gives the same images.
"""

import argparse
import os

import numpy as np

SIDE = 28

FONT = {
    "0": "01110 10001 10011 10101 11001 10001 01110",
    "1": "00100 01100 00100 00100 00100 00100 01110",
    "2": "01110 10001 00001 00110 01000 10000 11111",
    "3": "11110 00001 00001 01110 00001 00001 11110",
    "4": "00010 00110 01010 10010 11111 00010 00010",
    "5": "11111 10000 11110 00001 00001 10001 01110",
    "6": "00110 01000 10000 11110 10001 10001 01110",
    "7": "11111 00001 00010 00100 01000 01000 01000",
    "8": "01110 10001 10001 01110 10001 10001 01110",
    "9": "01110 10001 10001 01111 00001 00010 01100",
}


def glyph(digit):
    return np.array([[int(dot) for dot in row] for row in FONT[digit].split()], dtype=float)


def draw(digit, rng):
    """One 28x28 image: the glyph stretched, slanted, shifted, faded and buried in noise."""
    height, width = rng.integers(14, 23), rng.integers(9, 18)
    top = rng.integers(1, SIDE - height)
    left = rng.integers(2, SIDE - width - 1)
    slant = rng.uniform(-0.25, 0.25)

    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(float)
    x = x + slant * (y - SIDE / 2)
    row = np.floor((y - top) * 7 / height).astype(int)
    column = np.floor((x - left) * 5 / width).astype(int)
    inside = (row >= 0) & (row < 7) & (column >= 0) & (column < 5)

    image = np.where(inside, glyph(digit)[row.clip(0, 6), column.clip(0, 4)], 0.0)
    image = image * rng.uniform(0.5, 1.0) + rng.normal(0.0, 0.25, image.shape)
    return (image.clip(0, 1) * 255).astype(np.uint8)


def write_pgm(path, image):
    height, width = image.shape
    with open(path, "wb") as stream:
        stream.write(b"P5\n%d %d\n255\n" % (width, height))
        stream.write(image.tobytes())


def write_split(folder, images_per_class, rng):
    for digit in FONT:
        os.makedirs(os.path.join(folder, digit), exist_ok=True)
        for number in range(images_per_class):
            path = os.path.join(folder, digit, f"{number:05d}.pgm")
            write_pgm(path, draw(digit, rng))


def main():
    parser = argparse.ArgumentParser(description="Draw a small dataset of digits.")
    parser.add_argument("folder", nargs="?", default="data/digits")
    parser.add_argument("--train", type=int, default=320, help="training images per class")
    parser.add_argument("--test", type=int, default=80, help="test images per class")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = np.random.default_rng(args.seed)
    write_split(os.path.join(args.folder, "train"), args.train, rng)
    write_split(os.path.join(args.folder, "test"), args.test, rng)
    print(f"{10 * (args.train + args.test)} images in {args.folder}")


if __name__ == "__main__":
    main()
