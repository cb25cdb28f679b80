"""What a project's files tell, without running them, and what a cluster tells of itself."""
