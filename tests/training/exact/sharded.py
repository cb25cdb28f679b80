"""A model spread over processes by FSDP, with a session; the weights' digest is left at the end."""

import argparse
import hashlib
import os
import signal
from pathlib import Path

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import rabaska.training


class Points(torch.utils.data.Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, place):
        return torch.full((8,), place / 240) + 0.1 * torch.randn(8), torch.tensor([place / 240])


def main():
    words = argparse.ArgumentParser()
    words.add_argument("folder", type=Path)
    words.add_argument("--die-after", type=int)
    words.add_argument("--die", choices=["first", "last"], default="first")
    asked = words.parse_args()
    torch.distributed.init_process_group("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 33), torch.nn.Dropout(0.1), torch.nn.Linear(33, 1)
    )
    fully_shard(model, mesh=init_device_mesh("cpu", (ranks,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    victim = 0 if asked.die == "first" else ranks - 1
    parts = {"model": model, "optimizer": optimizer}
    with rabaska.training.session(asked.folder, save_every=4, **parts) as session:
        for x, y in session.loader(Points(), batch_size=6, epochs=2):
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            session.step(loss=loss.item())
            if session.steps == asked.die_after and rank == victim:
                os.kill(os.getpid(), signal.SIGKILL)
    whole = [value.full_tensor().numpy().tobytes() for value in model.state_dict().values()]
    if rank == 0:
        (asked.folder / "weights").write_text(hashlib.sha256(b"".join(whole)).hexdigest())
    torch.distributed.destroy_process_group()


main()
