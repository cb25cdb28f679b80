"""What is known about failures: messages, their meaning, what to do."""
