"""Schedulers that cannot be installed: programs that run jobs and print what the real ones do."""
