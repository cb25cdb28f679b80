"""In the style of Accelerate's examples: a folder for each epoch, and none unless told."""
import argparse
import os

import job
import torch


class Accelerator:
    def __init__(self, *stateful):
        self.stateful = stateful

    def save_state(self, folder):
        os.makedirs(folder)
        states = [each.state_dict() for each in self.stateful]
        torch.save(states, os.path.join(folder, 'pytorch_model.bin'))
        torch.save([], os.path.join(folder, 'random_states_0.pkl'))

    def load_state(self, folder):
        states = torch.load(os.path.join(folder, 'pytorch_model.bin'))
        for each, state in zip(self.stateful, states):
            each.load_state_dict(state)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_train_epochs", type=int, default=14)
    parser.add_argument("--output_dir", type=str, default=None, help="Where to store the model.")
    parser.add_argument(
        "--checkpointing_steps", type=str, default=None,
        help="Whether to save at the end of every n steps, or 'epoch' for each epoch.",
    )
    parser.add_argument("--resume_from_checkpoint", type=str, default=None)
    return parser.parse_args()


def main():
    args = parse_args()
    model = torch.Linear()
    optimizer = torch.SGD(model)
    accelerator = Accelerator(model, optimizer)
    starting_epoch = 0
    if args.resume_from_checkpoint:
        checkpoint_path = args.resume_from_checkpoint
        path = os.path.basename(args.resume_from_checkpoint)
        accelerator.load_state(checkpoint_path)
        training_difference = os.path.splitext(path)[0]
        starting_epoch = int(training_difference.replace("epoch_", "")) + 1
    for epoch in range(starting_epoch, args.num_train_epochs):
        optimizer.step()
        print(f"epoch {epoch}: loss {1 / (epoch + 1):.4f}")
        if args.checkpointing_steps == "epoch":
            accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))
        job.spend()


if __name__ == "__main__":
    main()
