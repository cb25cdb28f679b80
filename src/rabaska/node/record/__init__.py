"""The run folder as the record: its files, its holder, how its links ended, whether it goes on."""
