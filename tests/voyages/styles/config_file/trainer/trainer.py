import job
from base import BaseTrainer


class Trainer(BaseTrainer):
    def _train_epoch(self, epoch):
        self.optimizer.step()

    def _rest(self):
        job.spend()
