import os

import job
import torch


def parse_resume_step_from_filename(filename):
    """Of the form path/to/modelNNNNNN.pt."""
    return int(filename.split("model")[-1].split(".")[0])


class TrainLoop:
    def __init__(self, *, folder, resume_checkpoint):
        self.folder = folder
        self.resume_checkpoint = resume_checkpoint
        self.model = torch.Linear()
        self.opt = torch.SGD(self.model)
        self.step = 0
        self.resume_step = 0
        if self.resume_checkpoint:
            self.resume_step = parse_resume_step_from_filename(self.resume_checkpoint)
            states = torch.load(self.resume_checkpoint)
            self.model.load_state_dict(states["model"])
            self.opt.load_state_dict(states["opt"])

    def run_loop(self):
        while self.step + self.resume_step < 14:
            self.opt.step()
            self.step += 1
            number = self.step + self.resume_step
            print(f"step {number} loss {1 / number:.4f}")
            states = {"model": self.model.state_dict(), "opt": self.opt.state_dict()}
            torch.save(states, os.path.join(self.folder, f"model{number:06d}.pt"))
            job.spend()
