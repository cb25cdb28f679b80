"""In the style of a diffusion model: click, and settings that are unfolded into the loop."""
import os
import re

import click
import training_loop


class EasyDict(dict):
    pass


@click.command()
@click.option('--outdir', help='Where to save the results', metavar='DIR', required=True)
@click.option('--data', help='Path to the dataset', metavar='ZIP|DIR', required=True)
@click.option('--resume', help='Resume from previous training state', metavar='PT')
def main(**kwargs):
    """Train.

    torchrun --standalone --nproc_per_node=8 train.py --outdir=training-runs \\
        --data=datasets/cifar10-32x32.zip
    """
    opts = EasyDict(kwargs)
    c = EasyDict()
    if opts.resume is not None:
        match = re.fullmatch(r'training-state-(\d+).pt', os.path.basename(opts.resume))
        c.resume_kimg = int(match.group(1))
        c.resume_state_dump = opts.resume
    c.run_dir = opts.outdir
    training_loop.training_loop(**c)


if __name__ == "__main__":
    main()
