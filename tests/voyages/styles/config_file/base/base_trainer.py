import json
from datetime import datetime
from pathlib import Path

import torch


class BaseTrainer:
    def __init__(self, config, resume):
        self.config = config
        run_id = datetime.now().strftime('%m%d_%H%M%S_%f')
        self.checkpoint_dir = Path(config['trainer']['save_dir']) / config['name'] / run_id
        self.checkpoint_dir.mkdir(parents=True)
        (self.checkpoint_dir / 'config.json').write_text(json.dumps(config))
        self.model = torch.Linear()
        self.optimizer = torch.SGD(self.model)
        self.start_epoch = 1
        if resume is not None:
            self._resume_checkpoint(resume)

    def train(self):
        for epoch in range(self.start_epoch, self.config['trainer']['epochs'] + 1):
            self._train_epoch(epoch)
            print('Train Epoch: {} Loss: {:.6f}'.format(epoch, 1 / epoch))
            filename = str(self.checkpoint_dir / 'checkpoint-epoch{}.pth'.format(epoch))
            torch.save({
                'epoch': epoch,
                'state_dict': self.model.state_dict(),
                'optimizer': self.optimizer.state_dict(),
                'config': self.config,
            }, filename)
            self._rest()

    def _resume_checkpoint(self, resume_path):
        checkpoint = torch.load(str(resume_path))
        self.start_epoch = checkpoint['epoch'] + 1
        self.model.load_state_dict(checkpoint['state_dict'])
        self.optimizer.load_state_dict(checkpoint['optimizer'])
