"""A fine-tuning script with options of its own around the Trainer of Transformers."""

import argparse

from datasets import load_from_disk
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", default="reviews")
    parser.add_argument("--output_dir", default="out")
    parser.add_argument("--resume_from_checkpoint", default=None)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    training = TrainingArguments(
        output_dir=args.output_dir, num_train_epochs=args.epochs, save_steps=500
    )
    model = AutoModelForSequenceClassification.from_pretrained("bert")
    trainer = Trainer(model=model, args=training, train_dataset=load_from_disk(args.data_dir))
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)


if __name__ == "__main__":
    main()
