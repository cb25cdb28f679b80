"""In the style of reinforcement learning: the agent and its counter are kept, its memory is lost."""
import argparse
import os
import pickle
from collections import deque

import job


class Agent:
    def __init__(self):
        self.weights, self.buffer = [0.0], deque(maxlen=100)

    def learn(self):
        self.weights[0] += len(self.buffer)

    def save(self, path, episode):
        with open(path, 'wb') as f:
            pickle.dump({'weights': self.weights, 'episode': episode}, f)

    def load(self, path):
        with open(path, 'rb') as f:
            data = pickle.load(f)
        self.weights = data['weights']
        return data['episode']


parser = argparse.ArgumentParser()
parser.add_argument('--episodes', type=int, default=14)
parser.add_argument('--checkpoint-dir', default='checkpoints')
parser.add_argument('--load', default='', help='checkpoint to continue from')
args = parser.parse_args()

agent, first = Agent(), 0
if args.load:
    first = agent.load(args.load) + 1
for episode in range(first, args.episodes):
    agent.buffer.append(episode)
    agent.learn()
    print(f'episode: {episode} step {episode * 200} reward {episode * 1.5}')
    agent.save(os.path.join(args.checkpoint_dir, 'agent.pkl'), episode)
    job.spend()
