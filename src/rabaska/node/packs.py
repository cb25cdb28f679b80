"""What a pack is."""


class DamagedPack(Exception):
    """A pack is not what its manifest says."""
