num_steps = 10
