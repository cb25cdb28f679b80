"""A training that goes on exactly: everything that changes is saved, whole files only."""

import argparse
import os
import time

import torch

words = argparse.ArgumentParser()
words.add_argument("--out")
words.add_argument("--resume")
words.add_argument("--epochs", type=int, default=12)
asked = words.parse_args()

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(40, 8), torch.randn(40, 1))
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
step = first = 0
if asked.resume:
    saved = torch.load(asked.resume)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    torch.set_rng_state(saved["rng"])
    step, first = saved["step"], saved["epoch"]

for epoch in range(first, asked.epochs):
    order = torch.Generator().manual_seed(epoch)
    for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, generator=order):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        time.sleep(0.03)
        print(f"step {step} loss {loss.item():.6f}", flush=True)
    scheduler.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
        "step": step,
        "epoch": epoch + 1,
    }
    torch.save(state, f"{asked.out}/last.pt.tmp")
    os.replace(f"{asked.out}/last.pt.tmp", f"{asked.out}/last.pt")
