"""A whole batch read in one call, where this Python has the compiled part of rabaska."""

from rabaska.node.data.pack_format import FORMAT

samples = None
try:
    import rabaska_speed

    # One that was installed with another rabaska would check nothing, or not remember what it did.
    if getattr(rabaska_speed, "FORMAT", None) == FORMAT:
        samples = getattr(rabaska_speed, "compared_samples", None)
except ImportError:  # it is optional: only speed is lost
    pass

__all__ = ["samples"]
