"""The run folder as the record: its files, its holder, how its jobs ended, whether it goes on."""
