"""Small projects made from a few words: a training script, its settings, and files beside them."""

import textwrap
from dataclasses import dataclass, field
from pathlib import Path

# A program without fault: it saves, goes on, and takes all its paths from options.
TRAIN = """
import argparse, os
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--output", default="output")
    parser.add_argument("--resume", default="")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    model = torch.nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = 0
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        start = state["epoch"]
    data = datasets.ImageFolder(args.data, transforms.ToTensor())
    loader = DataLoader(data, batch_size=64, num_workers=args.workers)
    for epoch in range(start, args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            model(images).sum().backward()
            optimizer.step()
            {step}
        torch.save({{"model": model.state_dict(), "epoch": epoch}},
                   os.path.join(args.output, f"epoch-{{epoch}}.pt"))
        {epoch}
    {end}

{top}
if __name__ == "__main__":
    main()
"""

SETTINGS = """
name = "small"
command = "{command}"
{more}
[data.images]
path = "images"
{data}
[environment]
{environment}
[resources]
walltime = "{walltime}"
{resources}
[chain]
jobs = {jobs}
{cluster}
"""

COMMAND = "python train.py --data {data} --output {output} --resume {checkpoint}"
REQUIREMENTS = "torch==2.5.1\ntorchvision==0.20.1\n"
WITHOUT_CUDA = f"--extra-index-url https://download.pytorch.org/whl/cpu\n{REQUIREMENTS}"


@dataclass(frozen=True)
class Small:
    """Everything that a test varies; the rest is without fault."""

    on: str = "narval"
    train: str = ""  # the whole script, where it is another one
    step: str = "pass"
    epoch: str = "pass"
    end: str = "pass"
    top: str = ""
    command: str = COMMAND
    requirements: str = REQUIREMENTS
    environment: str = 'requirements = "requirements.txt"'
    walltime: str = "12h"
    resources: str = "gpus = 1\ncores = 4"
    data: str = ""
    jobs: int = 3
    cluster: str = 'account = "def-prof"'
    more: str = ""
    files: dict[str, str | bytes] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        script = self.train or TRAIN.format(
            step=self.step, epoch=self.epoch, end=self.end, top=self.top
        )
        settings = SETTINGS.format(
            command=self.command, more=self.more, data=self.data, environment=self.environment,
            walltime=self.walltime, resources=self.resources, jobs=self.jobs,
            cluster=f"[cluster.{self.on}]\n{self.cluster}" if self.cluster else "",
        )  # fmt: skip
        images = {f"images/{kind}/{n}.jpg": f"{kind} {n}" for kind in "ab" for n in range(3)}
        wanted = {
            **images, "train.py": textwrap.dedent(script), "rabaska.toml": settings,
            "requirements.txt": self.requirements, **self.files,
        }  # fmt: skip
        for name, content in wanted.items():
            if content is None:
                continue
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir()
                continue
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder
