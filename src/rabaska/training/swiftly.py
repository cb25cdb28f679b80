"""A whole batch read in one call, where this Python has the compiled part of rabaska."""

try:
    from rabaska_speed import samples
except ImportError:  # it is optional, and may be older: only speed is lost
    samples = None

__all__ = ["samples"]
