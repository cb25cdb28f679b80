"""In the style of JAX: a folder for each step, the newest of which is restored."""
import argparse
import os
import pickle

import job


class CheckpointManager:
    def __init__(self, folder):
        self.folder = folder

    def latest_step(self):
        steps = [int(name) for name in os.listdir(self.folder) if name.isdigit()]
        return max(steps, default=None)

    def save(self, step, state):
        os.makedirs(os.path.join(self.folder, str(step)))
        with open(os.path.join(self.folder, str(step), 'state.pkl'), 'wb') as f:
            pickle.dump(state, f)

    def restore(self, step):
        with open(os.path.join(self.folder, str(step), 'state.pkl'), 'rb') as f:
            return pickle.load(f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--workdir', required=True)
    parser.add_argument('--num_steps', type=int, default=14)
    args = parser.parse_args()
    manager = CheckpointManager(args.workdir)
    state, first = {'params': 0.0}, 0
    latest = manager.latest_step()
    if latest is not None:
        state = manager.restore(latest)
        first = latest + 1
    for step in range(first, args.num_steps):
        state['params'] += 1.0
        print(f'step={step} loss={1 / (step + 1):.4f}')
        manager.save(step, state)
        job.spend()


if __name__ == '__main__':
    main()
