"""What this computer remembers of its runs; all of it can be rebuilt from the clusters."""
