"""The lab's own tests boot it like everyone else's."""

from tests.lab.fixtures import lab, make_lab

__all__ = ["lab", "make_lab"]
