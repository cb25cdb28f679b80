"""What travels to the cluster: the program inside each job, and every file format both sides read.

The laws of this package, held by `make check`:

- Python 3.6 to 3.13, standard library only, no network;
- it imports nothing else of rabaska, and uses relative imports, because it travels as one zipapp;
- a job may be killed between any two lines: what matters is written by `files.write_whole`;
- one agent at a time holds a run (`lease`), and only the holder writes into it.
"""
