"""Checkpoints: whether one is whole, which is the newest, and how one is written whole."""
