"""A real Slurm cluster on one machine: nodes, a login node, and ways to break them."""

from .cluster import Lab
from .install import unavailable
from .site import Node, Partition, Site, Storage

__all__ = ["Lab", "Node", "Partition", "Site", "Storage", "unavailable"]
