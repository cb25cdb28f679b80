"""It prints nothing and cannot resume; its table grows from job to job."""
import argparse
import csv
import os

import job
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=14)
parser.add_argument('--out-dir', default='out')
args = parser.parse_args()

model = torch.Linear()
optimizer = torch.SGD(model)
table = os.path.join(args.out_dir, 'log.csv')
new = not os.path.exists(table)
with open(table, 'a', newline='') as f:
    writer = csv.writer(f)
    if new:
        writer.writerow(['epoch', 'loss'])
    for epoch in range(args.epochs):
        optimizer.step()
        writer.writerow([epoch, 1 / (epoch + 1)])
        f.flush()
        torch.save({'model': model.state_dict()}, os.path.join(args.out_dir, 'last.pt'))
        job.spend()
