"""In the style of Accelerate's examples: nothing is saved unless an option says how often."""
import argparse
import os

from accelerate import Accelerator


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name_or_path", type=str, required=True)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--output_dir", type=str, default=None, help="Where to store the model.")
    parser.add_argument(
        "--checkpointing_steps", type=str, default=None,
        help="Whether to save at the end of every n steps, or 'epoch' for each epoch.",
    )
    parser.add_argument("--resume_from_checkpoint", type=str, default=None)
    return parser.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator()
    starting_epoch = 0
    if args.resume_from_checkpoint:
        accelerator.load_state(args.resume_from_checkpoint)
        path = os.path.basename(args.resume_from_checkpoint)
        training_difference = os.path.splitext(path)[0]
        starting_epoch = int(training_difference.replace("epoch_", "")) + 1
    for epoch in range(starting_epoch, args.num_train_epochs):
        print(f"epoch {epoch}: loss 1.0")
        if args.checkpointing_steps == "epoch":
            accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))


if __name__ == "__main__":
    main()
