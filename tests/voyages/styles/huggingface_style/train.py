"""In the style of Hugging Face's scripts: the last checkpoint of the output folder is looked for."""
import argparse
import os

from transformers import Trainer, TrainingArguments, get_last_checkpoint


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--output_dir', required=True)
    parser.add_argument('--num_train_epochs', type=int, default=14)
    args = parser.parse_args()
    last_checkpoint = None
    if os.path.isdir(args.output_dir):
        last_checkpoint = get_last_checkpoint(args.output_dir)
    training_args = TrainingArguments(output_dir=args.output_dir, num_train_epochs=args.num_train_epochs)
    trainer = Trainer(model=None, args=training_args)
    trainer.train(resume_from_checkpoint=last_checkpoint)


if __name__ == '__main__':
    main()
