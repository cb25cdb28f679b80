"""Imports from files that are programs, too."""
import argparse
import os

import torch
from export import model_export

parser = argparse.ArgumentParser()
parser.add_argument('--out_dir', default='out')
parser.add_argument('--epochs', type=int, default=3)
args = parser.parse_args()
path = os.path.join(args.out_dir, 'ckpt.pt')
start = torch.load(path)['epoch'] if os.path.exists(path) else 0
for epoch in range(start, args.epochs):
    print('epoch %d loss 1.0' % epoch)
    torch.save({'epoch': epoch}, path)
model_export(path)
