"""One link of a run, inside its job: all made ready, the program started, its end written."""
