"""What a project's files tell, without running them."""
