"""Checks before the queue: what was read of a project goes in, findings come out."""
