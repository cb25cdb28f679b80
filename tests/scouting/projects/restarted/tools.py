import os

import torch


def restart_from_checkpoint(path, run_variables=None, **parts):
    if not os.path.isfile(path):
        return
    checkpoint = torch.load(path, map_location="cpu")
    for key, part in parts.items():
        if key in checkpoint:
            part.load_state_dict(checkpoint[key])
    if run_variables is not None:
        for name in run_variables:
            if name in checkpoint:
                run_variables[name] = checkpoint[name]
