"""In the style of scikit-learn: a pickle of the estimator, fed chunk by chunk; it prints nothing."""
import argparse
import os
import pickle

import job


class SGDClassifier:
    coefficient = 0.0

    def partial_fit(self, chunk):
        self.coefficient += chunk


parser = argparse.ArgumentParser()
parser.add_argument('--chunks', type=int, default=14)
parser.add_argument('--out', default='out')
parser.add_argument('--resume-from', default=None)
args = parser.parse_args()

classifier, start = SGDClassifier(), 0
if args.resume_from:
    with open(args.resume_from, 'rb') as stream:
        classifier, start = pickle.load(stream)
for chunk in range(start, args.chunks):
    classifier.partial_fit(chunk)
    with open(os.path.join(args.out, 'state.pkl'), 'wb') as stream:
        pickle.dump((classifier, chunk + 1), stream)
    job.spend()
