"""In the style of a template: its settings are in a JSON file, its trainer in packages."""
import argparse
import json
from pathlib import Path

import torch
from trainer import Trainer

if __name__ == '__main__':
    args = argparse.ArgumentParser(description='PyTorch Template')
    args.add_argument('-c', '--config', default=None, type=str, help='config file path')
    args.add_argument('-r', '--resume', default=None, type=str, help='path to latest checkpoint')
    args = args.parse_args()
    if args.resume is not None:
        resume = Path(args.resume)
        config = json.loads((resume.parent / 'config.json').read_text())
    else:
        resume = None
        config = json.loads(Path(args.config).read_text())
    if config['n_gpu'] > torch.cuda.device_count():
        print('Warning: there is no GPU available on this machine, training runs on CPU.')
    Trainer(config, resume).train()
