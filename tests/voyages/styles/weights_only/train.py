"""Its option loads the weights and nothing else."""
import argparse
import os

import job
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=14)
parser.add_argument('--resume', default=None, help='checkpoint to resume from')
parser.add_argument('--output-dir', default='out')
args = parser.parse_args()

model = torch.Linear()
optimizer = torch.SGD(model)
if args.resume is not None:
    model.load_state_dict(torch.load(args.resume, map_location='cpu'))
    print('loaded weights')
for epoch in range(args.epochs):
    optimizer.step()
    print(f'Epoch {epoch + 1}/{args.epochs} loss {1 / (epoch + 1):.4f}')
    torch.save(model.state_dict(), os.path.join(args.output_dir, 'last.pth'))
    job.spend()
