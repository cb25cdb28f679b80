from flax.training import checkpoints


def restore_checkpoint(state, workdir):
    return checkpoints.restore_checkpoint(workdir, state)


def save_checkpoint(state, workdir):
    checkpoints.save_checkpoint(workdir, state, int(state.step), keep=3)


def train_and_evaluate(config, workdir):
    state = restore_checkpoint(create(config), workdir)
    step_offset = int(state.step)
    for step in range(step_offset, config.num_steps):
        state = state.apply()
        print('train step: %d, loss: %.4f' % (step, state.loss))
        save_checkpoint(state, workdir)


def create(config):
    return config
