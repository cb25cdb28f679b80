"""What the phases of a job are called, in their order."""

BUILDING = "building the environment"
STAGING = "staging"
LOADING = "loading"  # the program started and has told of no step yet
TRAINING = "training"
SAVING = "saving"  # it writes a checkpoint, or was asked to stop
KEEPING = "keeping results"

# Parts of the training, as a watched program tells them.
WAITING = "waiting for data"
VALIDATING = "validating"
LOGGING = "logging"

ORDER = (BUILDING, STAGING, LOADING, WAITING, TRAINING, VALIDATING, LOGGING, SAVING, KEEPING)
