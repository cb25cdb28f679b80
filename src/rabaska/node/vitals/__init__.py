"""What a node tells while a job runs on it: its GPUs, its processes, its memory, its disk."""
