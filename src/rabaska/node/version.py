"""The version of rabaska, where both the laptop and the node can read it."""

__version__ = "0.1.0"
