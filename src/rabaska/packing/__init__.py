"""Folder → shards: everything that turns files on this computer into files that can travel."""
