"""In the style of nanoGPT: settings are globals, which a second file overrides by the words."""
import os

import job
import torch

out_dir = 'out'
eval_interval = 1
always_save_checkpoint = True
init_from = 'scratch' # 'scratch' or 'resume' or 'gpt2*'
max_iters = 14
learning_rate = 6e-4
config_keys = [k for k,v in globals().items() if not k.startswith('_') and isinstance(v, (int, float, bool, str))]
exec(open('configurator.py').read()) # overrides from command line or config file
config = {k: globals()[k] for k in config_keys}

os.makedirs(out_dir, exist_ok=True)
iter_num = 0
best_val_loss = 1e9
model = torch.Linear()
optimizer = torch.SGD(model)
if init_from == 'scratch':
    print("Initializing a new model from scratch")
elif init_from == 'resume':
    print(f"Resuming training from {out_dir}")
    ckpt_path = os.path.join(out_dir, 'ckpt.pt')
    checkpoint = torch.load(ckpt_path)
    model.load_state_dict(checkpoint['model'])
    iter_num = checkpoint['iter_num']
    best_val_loss = checkpoint['best_val_loss']
    optimizer.load_state_dict(checkpoint['optimizer'])

while True:
    if iter_num % eval_interval == 0:
        losses = {'train': 1 / (iter_num + 1), 'val': 1 / (iter_num + 1)}
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        if losses['val'] < best_val_loss or always_save_checkpoint:
            best_val_loss = losses['val']
            if iter_num > 0:
                checkpoint = {
                    'model': model.state_dict(),
                    'optimizer': optimizer.state_dict(),
                    'iter_num': iter_num,
                    'best_val_loss': best_val_loss,
                    'config': config,
                }
                torch.save(checkpoint, os.path.join(out_dir, 'ckpt.pt'))
    optimizer.step()
    print(f"iter {iter_num}: loss {losses['train']:.4f}, time 20.00ms, mfu 1.00%")
    iter_num += 1
    job.spend()
    if iter_num > max_iters:
        break
