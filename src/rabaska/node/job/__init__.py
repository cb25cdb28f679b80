"""One job of a run, where it runs: all made ready, the program started, its end written."""
