"""In the style of Hugging Face's examples: the checkpoint is one of the Trainer's own arguments."""
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


def main():
    parser = HfArgumentParser((TrainingArguments,))
    (training_args,) = parser.parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    trainer = Trainer(model=model, args=training_args)
    if training_args.do_train:
        checkpoint = None
        if training_args.resume_from_checkpoint is not None:
            checkpoint = training_args.resume_from_checkpoint
        trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()


if __name__ == "__main__":
    main()
