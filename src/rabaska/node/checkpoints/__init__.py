"""Checkpoints: whether one is complete, which is the newest, and how one is written."""
