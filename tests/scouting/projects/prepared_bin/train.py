import os

import numpy as np
import torch

out_dir = "out"
init_from = "scratch"
dataset = "letters"
max_iters = 100
exec(open("configurator.py").read())

data_dir = os.path.join("data", dataset)
iter_num = 0
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.AdamW(model.parameters())
if init_from == "resume":
    checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"))
    iter_num = checkpoint["iter_num"]
while iter_num < max_iters:
    batch = np.memmap(os.path.join(data_dir, "train.bin"), dtype=np.uint16, mode="r")
    model(torch.tensor(batch[:1]).float()).sum().backward()
    optimizer.step()
    iter_num += 1
    print(f"iter {iter_num}: trained")
    torch.save({"iter_num": iter_num}, os.path.join(out_dir, "ckpt.pt"))
