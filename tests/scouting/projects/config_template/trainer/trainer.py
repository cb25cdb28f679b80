from base import BaseTrainer


class Trainer(BaseTrainer):
    def _train_epoch(self, epoch):
        self.optimizer.step()
