from pathlib import Path

import fire
import torch
from ignite.contrib.engines import common
from ignite.engine import Engine
from ignite.handlers import Checkpoint, DiskSaver


def training(config):
    train_loader = loader(config)
    trainer = make_trainer(config)
    trainer.run(train_loader, max_epochs=config["epochs"])


def make_trainer(config):
    def step(engine, batch):
        loss = config["model"](batch)
        loss.backward()
        return loss.item()

    trainer = Engine(step)
    to_save = {"trainer": trainer, "model": config["model"]}
    saver = DiskSaver(config["output_path"], require_empty=False)
    common.setup_common_training_handlers(trainer, to_save=to_save, save_handler=saver)
    resume_from = config["resume_from"]
    if resume_from is not None:
        path = Path(resume_from)
        checkpoint = torch.load(path.as_posix(), map_location="cpu")
        Checkpoint.load_objects(to_load=to_save, checkpoint=checkpoint)
    return trainer


def loader(config):
    return [config["seed"]]


def run(seed=543, output_path="/tmp/output-rings/", epochs=24, resume_from=None):
    config = locals()
    training(config)


if __name__ == "__main__":
    fire.Fire({"run": run})
