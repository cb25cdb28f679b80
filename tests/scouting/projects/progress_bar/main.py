"""Draws a bar as wide as the terminal, which a job does not have."""
import argparse

import torch
from utils import progress_bar

parser = argparse.ArgumentParser()
parser.add_argument('--resume', '-r', action='store_true', help='resume from checkpoint')
args = parser.parse_args()
start_epoch = 0
if args.resume:
    checkpoint = torch.load('./checkpoint/ckpt.pth')
    start_epoch = checkpoint['epoch']
for epoch in range(start_epoch, start_epoch + 200):
    print('\nEpoch: %d' % epoch)
    progress_bar(epoch, 200)
    torch.save({'epoch': epoch}, './checkpoint/ckpt.pth')
