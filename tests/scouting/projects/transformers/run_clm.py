"""In the style of the Transformers examples: dataclasses become options."""

from dataclasses import dataclass, field
from typing import Optional

from transformers import HfArgumentParser, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default="gpt2", metadata={"help": "The checkpoint"})


@dataclass
class DataTrainingArguments:
    train_file: Optional[str] = field(default="texts/train.txt")
    block_size: Optional[int] = field(default=None)
    overwrite_cache: bool = field(default=False)


def main():
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    checkpoint = get_last_checkpoint(training_args.output_dir)
    trainer = Trainer(model=model_args.model_name_or_path, args=training_args)
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()
