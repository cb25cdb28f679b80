num_steps = 2
