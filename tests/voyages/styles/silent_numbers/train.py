"""It prints nothing and cannot resume; its checkpoints are numbered."""
import argparse
import os

import job
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--steps', type=int, default=1400)
parser.add_argument('--out-dir', default='out')
args = parser.parse_args()

model = torch.Linear()
optimizer = torch.SGD(model)
for step in range(100, args.steps + 1, 100):
    optimizer.step()
    torch.save(model.state_dict(), os.path.join(args.out_dir, f'step_{step}.pt'))
    job.spend()
