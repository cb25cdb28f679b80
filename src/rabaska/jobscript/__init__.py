"""The text of job.sh: short enough to read aloud, and someone without rabaska could run it."""
