"""Trains a small neural network on images of digits, with NumPy only."""

import argparse
import glob
import json
import os

# The matrices are small: with more threads, most of the time goes into waiting for each other.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

HIDDEN = (512, 256)
SAVE_EVERY = 50  # steps
PRINT_EVERY = 20  # steps


def read_pgm(path):
    with open(path, "rb") as f:
        magic, size, _, pixels = f.read().split(b"\n", 3)
    assert magic == b"P5", path
    width, height = map(int, size.split())
    return np.frombuffer(pixels, dtype=np.uint8).reshape(height, width)


def load_images(folder):
    """Every image of `folder`/<class>/*.pgm as rows of x, and its class number in y."""
    x, y = [], []
    for label, name in enumerate(sorted(os.listdir(folder))):
        for path in sorted(glob.glob(os.path.join(folder, name, "*.pgm"))):
            x.append(read_pgm(path).ravel())
            y.append(label)
    return np.array(x, dtype=np.float32) / 255 - 0.2, np.array(y)


def init_model(sizes, rng):
    params = {}
    for i in range(len(sizes) - 1):
        n_in, n_out = sizes[i], sizes[i + 1]
        params[f"W{i}"] = rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out)).astype(np.float32)
        params[f"b{i}"] = np.zeros(n_out, dtype=np.float32)
    return params


def forward(params, x):
    """The activations of every layer; the last one holds the class probabilities."""
    layers = len(params) // 2
    activations = [x]
    for i in range(layers):
        z = activations[-1] @ params[f"W{i}"] + params[f"b{i}"]
        if i < layers - 1:
            z = np.maximum(z, 0)
        else:
            z = np.exp(z - z.max(axis=1, keepdims=True))
            z /= z.sum(axis=1, keepdims=True)
        activations.append(z)
    return activations


def backward(params, activations, y):
    grads = {}
    delta = activations[-1].copy()
    delta[np.arange(len(y)), y] -= 1
    delta /= len(y)
    for i in reversed(range(len(params) // 2)):
        grads[f"W{i}"] = activations[i].T @ delta
        grads[f"b{i}"] = delta.sum(axis=0)
        if i > 0:
            delta = (delta @ params[f"W{i}"].T) * (activations[i] > 0)
    return grads


def augment(x, rng):
    """Shift each image by up to two pixels and add a little noise."""
    side = int(np.sqrt(x.shape[1]))
    images = x.reshape(-1, side, side)
    shifted = [np.roll(image, rng.integers(-2, 3, size=2), axis=(0, 1)) for image in images]
    noise = rng.normal(0, 0.05, images.shape)
    return (np.stack(shifted) + noise).reshape(x.shape).astype(np.float32)


def accuracy(params, x, y):
    return float((forward(params, x)[-1].argmax(axis=1) == y).mean())


def save_checkpoint(folder, step, params, velocity):
    momentum = {"v_" + name: value for name, value in velocity.items()}
    np.savez(os.path.join(folder, f"checkpoint-{step:06d}.npz"), step=step, **params, **momentum)
    for old in sorted(glob.glob(os.path.join(folder, "checkpoint-*.npz")))[:-3]:
        os.remove(old)


def load_checkpoint(path):
    with np.load(path) as saved:
        values = {name: saved[name] for name in saved.files}
    step = int(values.pop("step"))
    params = {name: value for name, value in values.items() if not name.startswith("v_")}
    velocity = {name: values["v_" + name] for name in params}
    return step, params, velocity


def main():
    parser = argparse.ArgumentParser(description="Train a digit classifier")
    parser.add_argument("--data", default="data/digits", help="folder with train/ and test/")
    parser.add_argument("--output", default="output", help="where checkpoints and results go")
    parser.add_argument("--resume", default=None, help="checkpoint to continue from")
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    os.makedirs(args.output, exist_ok=True)
    x_train, y_train = load_images(os.path.join(args.data, "train"))
    x_test, y_test = load_images(os.path.join(args.data, "test"))
    print(f"{len(x_train)} training images, {len(x_test)} test images")

    start = 0
    sizes = (x_train.shape[1], *HIDDEN, 10)
    params = init_model(sizes, np.random.default_rng(args.seed))
    velocity = {name: np.zeros_like(value) for name, value in params.items()}
    if args.resume:
        start, params, velocity = load_checkpoint(args.resume)
        print(f"resuming from {args.resume} at step {start}")

    steps_per_epoch = len(x_train) // args.batch_size
    last = args.epochs * steps_per_epoch
    for step in range(start + 1, last + 1):
        epoch, position = divmod(step - 1, steps_per_epoch)
        # The order and the noise depend on the step alone, so a resumed run repeats them.
        order = np.random.default_rng([args.seed, epoch]).permutation(len(x_train))
        batch = order[position * args.batch_size : (position + 1) * args.batch_size]
        x = augment(x_train[batch], np.random.default_rng([args.seed, 1, step]))
        y = y_train[batch]

        activations = forward(params, x)
        grads = backward(params, activations, y)
        for name in params:
            velocity[name] = 0.9 * velocity[name] - args.lr * grads[name]
            params[name] += velocity[name]

        if step % PRINT_EVERY == 0:
            loss = -np.log(activations[-1][np.arange(len(y)), y] + 1e-9).mean()
            print(f"epoch {epoch + 1} step {step} loss {loss:.2f}", flush=True)
        if step % SAVE_EVERY == 0:
            save_checkpoint(args.output, step, params, velocity)

    save_checkpoint(args.output, last, params, velocity)
    test_accuracy = accuracy(params, x_test, y_test)
    print(f"test accuracy {test_accuracy:.3f}")
    with open(os.path.join(args.output, "results.json"), "w") as f:
        json.dump({"accuracy": test_accuracy, "steps": last, "epochs": args.epochs}, f)


if __name__ == "__main__":
    main()
