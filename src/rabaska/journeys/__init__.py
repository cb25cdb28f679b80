"""What a user wants done: one file per verb, each a short list of steps."""
