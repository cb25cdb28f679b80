"""A program that takes longer to save than some schedulers give it."""

# Takes two seconds to save when it is asked to stop: more than Torque's qdel gives.
SLOW_TO_SAVE = """
import json, signal, sys, time

def save(*_):
    time.sleep(2)
    with open(sys.argv[1] + "/checkpoint-0001.json", "w") as f:
        json.dump({"step": 1}, f)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""
