from pathlib import Path

import torch


class BaseTrainer:
    def __init__(self, config, resume):
        self.config = config
        self.checkpoint_dir = Path(config['trainer']['save_dir']) / config['name']
        self.start_epoch = 1
        if resume is not None:
            self._resume_checkpoint(resume)

    def train(self):
        for epoch in range(self.start_epoch, self.config['trainer']['epochs'] + 1):
            self._train_epoch(epoch)
            print('Train Epoch: {} Loss: {:.6f}'.format(epoch, 1 / epoch))
            filename = str(self.checkpoint_dir / 'checkpoint-epoch{}.pth'.format(epoch))
            state = {'epoch': epoch, 'state_dict': {}, 'config': self.config}
            torch.save(state, filename)

    def _resume_checkpoint(self, resume_path):
        checkpoint = torch.load(str(resume_path))
        self.start_epoch = checkpoint['epoch'] + 1
