"""crc32 as `zlib` gives it, sooner where this Python has the compiled part of rabaska."""

try:
    from rabaska_speed import crc32
except ImportError:  # it is optional: only speed is lost
    from zlib import crc32

__all__ = ["crc32"]
