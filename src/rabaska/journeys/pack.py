"""Pack: every dataset of a project becomes shards on this computer, if it changed."""

from rabaska.domain.projects import Project
from rabaska.packing.make_pack import Pack
from rabaska.records.home import Home
from rabaska.steps.pack_dataset import pack_dataset, pack_datasets
from rabaska.steps.progress import Reporter, SilentReporter

__all__ = ["pack", "pack_dataset"]


def pack(project: Project, home: Home, reporter: Reporter | None = None) -> tuple[Pack, ...]:
    return pack_datasets(project, home, reporter or SilentReporter())
