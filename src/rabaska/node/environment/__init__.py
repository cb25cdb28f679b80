"""Python environments on the cluster: what pip would install, and environments as one file."""
