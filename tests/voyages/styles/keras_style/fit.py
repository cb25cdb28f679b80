"""In the style of Keras: a callback backs the training up and restores it."""
import argparse

import keras

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=14)
args = parser.parse_args()
model = keras.Model()
model.fit(epochs=args.epochs, callbacks=[keras.BackupAndRestore(backup_dir='backup')])
