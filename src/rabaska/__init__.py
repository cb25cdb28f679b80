"""rabaska carries a training project from a laptop to any HPC cluster and back."""

from rabaska.node.version import __version__ as __version__
