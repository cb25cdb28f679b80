import os

import torch


def training_loop(run_dir='.', resume_state_dump=None, resume_kimg=0, total_kimg=200):
    if resume_state_dump:
        data = torch.load(resume_state_dump)
        print(len(data))
    cur_nimg = resume_kimg * 1000
    while True:
        cur_nimg += 512
        if cur_nimg >= total_kimg * 1000:
            break
        torch.save({}, os.path.join(run_dir, f'training-state-{cur_nimg//1000:06d}.pt'))
