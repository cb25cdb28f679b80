"""Schedulers that cannot be installed here: programs that run jobs and print what the real ones do."""
