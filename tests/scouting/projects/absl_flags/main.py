import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Where the records are.", required=True)
flags.DEFINE_string("model_dir", "/tmp/model", "Where checkpoints are saved and found again.")
flags.DEFINE_integer("train_steps", 10000, "Steps.")


def main(_):
    checkpoint = tf.train.Checkpoint(step=tf.Variable(0))
    checkpoint.restore(tf.train.latest_checkpoint(FLAGS.model_dir))
    for step in range(int(checkpoint.step), FLAGS.train_steps):
        print("global_step: {} of {}".format(step, FLAGS.train_steps))


if __name__ == "__main__":
    app.run(main)
