"""Ends a job after six epochs: quicker than a time limit, and the same to the chain rule."""
import os
import sys
import time

made = 0


def spend():
    global made
    made += 1
    time.sleep(0.02)
    if made == int(os.environ.get("EPOCHS_PER_JOB", "6")):
        sys.stdout.flush()
        os._exit(85)
