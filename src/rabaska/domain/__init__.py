"""Nouns and rules, without input or output."""
