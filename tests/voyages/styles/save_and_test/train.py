"""In the style of PyTorch's word language model: what it saved is loaded for the final test only."""
import argparse

import job
import torch

parser = argparse.ArgumentParser(description='Language Model')
parser.add_argument('--epochs', type=int, default=14)
parser.add_argument('--save', type=str, default='model.pt', help='path to save the final model')
args = parser.parse_args()

model = torch.Linear()
optimizer = torch.SGD(model)
best_val_loss = None
for epoch in range(1, args.epochs + 1):
    optimizer.step()
    val_loss = 1 / epoch
    print('| end of epoch {:3d} | time: {:5.2f}s | valid loss {:5.2f}'.format(epoch, 0.1, val_loss))
    if not best_val_loss or val_loss < best_val_loss:
        with open(args.save, 'wb') as f:
            torch.save(model, f)
        best_val_loss = val_loss
    job.spend()

with open(args.save, 'rb') as f:
    model = torch.load(f)
print('| End of training | test loss {:5.2f}'.format(model.weight))
