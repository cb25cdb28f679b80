"""It looks into its output folder by itself, without an option."""
import argparse
import os

import job
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=14)
parser.add_argument('--output-dir', default='out')
args = parser.parse_args()

model = torch.Linear()
optimizer = torch.SGD(model)
start_epoch = 0
path = os.path.join(args.output_dir, 'last.pt')
if os.path.exists(path):
    state = torch.load(path)
    model.load_state_dict(state['model'])
    optimizer.load_state_dict(state['optimizer'])
    start_epoch = state['epoch'] + 1
for epoch in range(start_epoch, args.epochs):
    optimizer.step()
    print(f'epoch {epoch} loss {1 / (epoch + 1):.4f}')
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch}, path)
    job.spend()
