"""Keras: callbacks write, and BackupAndRestore continues by itself."""

import argparse

import tensorflow as tf
from tensorflow import keras

parser = argparse.ArgumentParser()
parser.add_argument("--image-dir", required=True)
parser.add_argument("--logdir", default="logs")
args = parser.parse_args()

strategy = tf.distribute.MirroredStrategy()
model = keras.Sequential([keras.layers.Dense(10)])
dataset = keras.utils.image_dataset_from_directory(args.image_dir)
model.fit(
    dataset,
    epochs=50,
    callbacks=[
        keras.callbacks.ModelCheckpoint("weights/epoch-{epoch:02d}.keras"),
        keras.callbacks.BackupAndRestore("backup"),
        keras.callbacks.TensorBoard(log_dir=args.logdir),
    ],
)
model.save("weights/final.keras")
