"""A recipe for commands of one word. To run it, do the following:
> python train.py hparams/train.yaml
"""

import sys

import speechbrain as sb
from hyperpyyaml import load_hyperpyyaml


class WordBrain(sb.Brain):
    def compute_forward(self, batch, stage):
        return self.modules.model(batch.sig)

    def compute_objectives(self, predictions, batch, stage):
        return sb.nnet.losses.nll_loss(predictions, batch.word)

    def on_stage_end(self, stage, stage_loss, epoch=None):
        if stage == sb.Stage.VALID:
            self.checkpointer.save_and_keep_only(meta={"loss": stage_loss}, min_keys=["loss"])


if __name__ == "__main__":
    hparams_file, run_opts, overrides = sb.parse_arguments(sys.argv[1:])
    with open(hparams_file) as stream:
        hparams = load_hyperpyyaml(stream, overrides)
    brain = WordBrain(
        modules=hparams["modules"],
        opt_class=hparams["opt_class"],
        run_opts=run_opts,
        checkpointer=hparams["checkpointer"],
    )
    brain.fit(hparams["epoch_counter"], hparams["train_set"], hparams["valid_set"])
