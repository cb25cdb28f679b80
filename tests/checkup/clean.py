"""Projects without fault, in the style of public training scripts."""

from small_projects import REQUIREMENTS, Small

MNIST = """
from __future__ import print_function
import argparse
import torch
import torch.nn as nn
from torchvision import datasets, transforms

def main():
    parser = argparse.ArgumentParser(description="PyTorch MNIST Example")
    parser.add_argument("--data", default="../data")
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--save-model", action="store_true", default=False)
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    train_kwargs = {"batch_size": 64}
    if use_cuda:
        train_kwargs.update({"num_workers": 1, "pin_memory": True, "shuffle": True})
    dataset = datasets.MNIST(args.data, train=True, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(dataset, **train_kwargs)
    model = nn.Linear(784, 10).to(device)
    for epoch in range(1, args.epochs + 1):
        for batch_idx, (data, target) in enumerate(loader):
            model(data.to(device)).sum().backward()
            if batch_idx % 10 == 0:
                print("Train Epoch: {} Loss: {:.6f}".format(epoch, 0.1))
    if args.save_model:
        torch.save(model.state_dict(), "mnist_cnn.pt")
    if args.show:
        import matplotlib.pyplot as plt
        plt.show()

if __name__ == "__main__":
    main()
"""

IMAGENET = """
import argparse, os, shutil
import torch
import torch.distributed as dist
import torchvision.models as models
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("data", metavar="DIR", nargs="?", default="imagenet")
parser.add_argument("-a", "--arch", default="resnet18")
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--resume", default="", type=str)
parser.add_argument("--start-epoch", default=0, type=int)
parser.add_argument("--pretrained", dest="pretrained", action="store_true")

def main():
    args = parser.parse_args()
    dist.init_process_group("nccl")
    if args.pretrained:
        model = models.__dict__[args.arch](pretrained=True)
    else:
        model = models.__dict__[args.arch]()
    model = DistributedDataParallel(model)
    if args.resume:
        if os.path.isfile(args.resume):
            checkpoint = torch.load(args.resume)
            args.start_epoch = checkpoint["epoch"]
    loader = torch.utils.data.DataLoader([], num_workers=args.workers)
    for epoch in range(args.start_epoch, 90):
        for images, target in loader:
            model(images)
        save_checkpoint({"epoch": epoch + 1}, is_best=False)

def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")

if __name__ == "__main__":
    main()
"""

LIGHTNING = """
import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

class Net(L.LightningModule):
    def training_step(self, batch, index):
        return batch.sum()

def main(data, output, resume=None):
    \"\"\"Train on `data`, for example /home/me/data on a laptop.\"\"\"
    trainer = L.Trainer(max_epochs=10, precision="16-mixed", default_root_dir=output,
                        callbacks=[ModelCheckpoint(dirpath=output, save_last=True)])
    trainer.fit(Net(), ckpt_path=resume)

if __name__ == "__main__":
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--data"); parser.add_argument("--output"); parser.add_argument("--resume")
    args = parser.parse_args()
    main(args.data, args.output, args.resume)
"""

KERAS = """
import argparse
import tensorflow as tf
from tensorflow import keras

parser = argparse.ArgumentParser()
parser.add_argument("--data"); parser.add_argument("--output")
args = parser.parse_args()
model = keras.Sequential([keras.layers.Dense(10)])
model.compile("adam", "mse")
data = keras.utils.image_dataset_from_directory(args.data)
model.fit(data, epochs=10, callbacks=[
    keras.callbacks.ModelCheckpoint(args.output + "/model-{epoch:02d}.keras"),
    keras.callbacks.BackupAndRestore(args.output + "/backup"),
])
"""

HUGGING_FACE = """
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--model"); parser.add_argument("--data"); parser.add_argument("--output")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model)
arguments = TrainingArguments(output_dir=args.output, bf16=True, save_steps=500)
trainer = Trainer(model=model, args=arguments)
trainer.train(resume_from_checkpoint=get_last_checkpoint(args.output))
"""

GAN = """
import argparse, os, random
import torch
import torchvision.utils as vutils
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

parser = argparse.ArgumentParser()
parser.add_argument("--dataroot", required=True)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--netG", default="")
parser.add_argument("--outf", default=".")
opt = parser.parse_args()
os.makedirs(opt.outf, exist_ok=True)
netG = torch.nn.Linear(100, 784)
first = 0
if opt.netG != "":
    state = torch.load(opt.netG)
    netG.load_state_dict(state["netG"])
    first = state["epoch"] + 1
loader = torch.utils.data.DataLoader([], batch_size=64, num_workers=int(opt.workers))
for epoch in range(first, 25):
    for i, data in enumerate(loader, 0):
        netG(data).mean().backward()
        if i % 100 == 0:
            vutils.save_image(data, "%s/real.png" % opt.outf)
    state = {"netG": netG.state_dict(), "epoch": epoch}
    torch.save(state, "%s/netG_epoch_%d.pth" % (opt.outf, epoch))
plt.savefig(os.path.join(opt.outf, "losses.png"))
"""

UNET = """
import argparse, logging
from pathlib import Path
import torch
import wandb
from torch.utils.data import DataLoader, random_split

def train_model(model, device, data, output, epochs=5, amp=False, load=None):
    first = 1
    if load:
        state = torch.load(load, map_location=device)
        model.load_state_dict(state.pop("model"))
        first = state["epoch"] + 1
    experiment = wandb.init(project="U-Net", resume="allow", mode="offline")
    loader = DataLoader(data, shuffle=True, num_workers=4, pin_memory=True)
    for epoch in range(first, epochs + 1):
        for batch in loader:
            experiment.log({"loss": model(batch).item()})
        Path(output).mkdir(parents=True, exist_ok=True)
        state = {"model": model.state_dict(), "epoch": epoch}
        torch.save(state, str(Path(output) / f"checkpoint_epoch{epoch}.pth"))
        logging.info(f"Checkpoint {epoch} saved!")

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data"); parser.add_argument("--output"); parser.add_argument("--load")
    args = parser.parse_args()
    train_model(torch.nn.Linear(2, 2), "cuda", args.data, args.output, load=args.load)
"""

OWN = """
import os, pickle
import numpy as np

data = os.environ["RABASKA_DATA"]
checkpoints = os.environ["RABASKA_CHECKPOINTS"]
weights, first = np.zeros(10), 0
if os.environ.get("RABASKA_CHECKPOINT"):
    state = np.load(os.environ["RABASKA_CHECKPOINT"])
    weights, first = state["weights"], int(state["epoch"]) + 1
for epoch in range(first, 100):
    weights += 0.1
    np.savez(os.path.join(checkpoints, "state.npz"), weights=weights, epoch=epoch)
"""

DOWNLOADS_IF_MISSING = """
import argparse, os, urllib.request
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--data"); parser.add_argument("--output"); parser.add_argument("--resume")
args = parser.parse_args()
if not os.path.exists(args.data):
    urllib.request.urlretrieve("https://example.org/data.zip", "data.zip")
state = torch.load(args.resume) if args.resume else {}
dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
for epoch in range(state.get("epoch", 0), 10):
    torch.save({"epoch": epoch}, os.path.join(args.output, "last.pt"))
"""

_TRAINED = "python train.py --data {data} --output {output}"

# Its Trainer, with the callback that saves, is made of a configuration file.
HYDRA_LIGHTNING = """
import hydra
from lightning import Trainer

@hydra.main(config_path=".", config_name="train")
def main(cfg):
    trainer: Trainer = hydra.utils.instantiate(cfg.trainer)
    trainer.fit(hydra.utils.instantiate(cfg.model), ckpt_path=cfg.get("ckpt_path"))
    trainer.test(ckpt_path=trainer.checkpoint_callback.best_model_path)

if __name__ == "__main__":
    main()
"""

CLEAN = {
    "plain": Small(),
    "trainer-of-a-configuration": Small(
        train=HYDRA_LIGHTNING, requirements="lightning==2.5.0\nhydra-core==1.3.2\n",
        command="python train.py data.root={data} ckpt_path={checkpoint} hydra.run.dir={output}",
        files={"train.yaml": "ckpt_path: null\ndata:\n  root: x\n"},
    ),
    "data-by-our-variable": Small(
        command="python train.py --data images --output {output} --resume {checkpoint}",
        top="DATA = os.environ.get('RABASKA_DATA')",
    ),
    "data-linked-to-its-place": Small(
        command="bash -c 'ln -s {data} images; python train.py --data images --resume "
        "{checkpoint} --output {output}'",
    ),
    "tables-of-other-clusters": Small(
        environment='requirements = "requirements.txt"\n[cluster.narval2]\nmail = "a@b.org"\n'
        '[cluster.narval-gpu]\nmail = "a@b.org"\n[cluster.beluga]\nmail = "a@b.org"'
    ),
    "package-named-like-data-there": Small(
        data='[data.rings]\nat = "/scratch/rings"', top="import rings",
        command="python train.py --data {data.images} --output {output} --resume {checkpoint}",
        files={"rings/__init__.py": "", "rings/table.csv": "x"},
    ),
    "mnist": Small(train=MNIST, jobs=1, command="python train.py --data {data} --save-model"),
    "imagenet": Small(
        train=IMAGENET, command="python train.py {data} --resume {checkpoint}",
        more='launch = "torchrun"', resources='gpus = 4\ncores = 12\nmemory = "480 GB"',
    ),
    "lightning": Small(
        train=LIGHTNING, requirements="lightning==2.5.0\ntorch==2.5.1\n",
        command=_TRAINED + " --resume {checkpoint}",
    ),
    "keras": Small(
        on="mila", train=KERAS, command=_TRAINED, requirements="tensorflow==2.18.0\n", cluster="",
        resources='gpus = 1\ngpu_model = "l40s"\ncores = 4',
    ),
    "hugging-face": Small(
        on="rorqual", train=HUGGING_FACE, requirements="transformers\ntorch==2.6.0\n",
        command=_TRAINED + " --model {data}",
    ),
    "gan": Small(
        train=GAN, requirements=REQUIREMENTS + "matplotlib\n",
        command="python train.py --dataroot {data} --outf {output} --netG {checkpoint}",
    ),
    "unet": Small(
        train=UNET, requirements=REQUIREMENTS + "wandb\n",
        command=_TRAINED + " --load {checkpoint}",
    ),
    "own-variables": Small(train=OWN, command="python train.py", requirements="numpy\n"),
    "downloads-if-missing": Small(
        train=DOWNLOADS_IF_MISSING, command=_TRAINED + " --resume {checkpoint}",
    ),
    "sdumont-v100": Small(on="sdumont", cluster='queue = "sequana_gpu_shared"', walltime="4d"),
    "sdumont-k40-from-source": Small(
        on="sdumont", cluster='queue = "nvidia_long"', walltime="20d",
        environment='kind = "activate"\npath = "$SCRATCH/miniconda3/envs/myenv"',
    ),
    "jean-zay": Small(
        on="jean-zay", cluster='account = "abc@v100"', environment='modules = ["pytorch-gpu"]',
        resources="gpus = 1\ncores = 10",
    ),
    "script-by-absolute-path": Small(command="python /opt/site/fit.py {data}", jobs=1),
    "script-of-the-cluster": Small(command="python $HOME/fit.py {data}", jobs=1),
    "script-in-the-data": Small(command="python {data}/fit.py", jobs=1),
    "script-that-is-linked-into-the-data": Small(command="python images/fit.py", jobs=1),
    "script-made-by-the-command": Small(
        command="sh -c 'make fit.py && python fit.py --data {data}'", jobs=1,
    ),
    "script-after-links": Small(
        command="sh -c 'mkdir -p a && ln -sfn $RABASKA_DATA a/b && exec \\\"$@\\\"' links "
        + _TRAINED + " --resume {checkpoint}",
    ),
    "script-in-another-working-folder": Small(
        command="env --chdir=sub python fit.py {data}", jobs=1, files={"sub/fit.py": "print(1)"},
    ),
    "script-with-dots": Small(command=f"python ./sub/../train.py {_TRAINED[16:]}", jobs=1),
    "module-of-others": Small(command="python -m lightning_tool.fit conf.py {data}", jobs=1),
    "module-of-the-project": Small(
        command="python -m tools.fit {data}", jobs=1, files={"tools/fit.py": "print(1)"},
    ),
    "package-of-the-project": Small(
        command="python -m tools.fit {data}", jobs=1,
        files={"tools/__init__.py": "", "tools/fit/__main__.py": "print(1)"},
    ),
    "an-argument-that-is-no-file": Small(
        command="python train.py --data {data} --config made_later.py", jobs=1,
    ),
    "a-program-that-is-installed": Small(command="fit-tool conf.py --data {data}", jobs=1),
    "in-a-container": Small(command="apptainer exec site.sif python fit.py {data}", jobs=1),
    "on-this-computer": Small(
        on="here", cluster="", environment="", resources="gpus = 0", walltime="3h",
        files={"job.sh": "#!/bin/bash\n#SBATCH --time=1:00:00\npython train.py\n"},
    ),
}  # fmt: skip
