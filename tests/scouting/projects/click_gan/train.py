"""click: names with two spellings, a pair of switches."""

import os

import click
import torch


@click.command()
@click.option("--data", "data_path", required=True, help="Training data", metavar="DIR")
@click.option("--outdir", required=True, help="Where to save the results", metavar="DIR")
@click.option("--gpus", type=int, default=1, show_default=True)
@click.option("--resume", help="Resume from given network pickle", metavar="PKL")
@click.option("--mirror/--no-mirror", default=True)
def main(data_path, outdir, gpus, resume, mirror):
    first = 0
    if resume:
        first = torch.load(resume)["step"]
    for step in range(first, 1000):
        print("step", step)
        path = os.path.join(outdir, f"network-snapshot-{step:06d}.pkl")
        torch.save({"step": step, "data": data_path}, path)


if __name__ == "__main__":
    main()
