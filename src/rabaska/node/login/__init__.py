"""What the login node answers: how runs stand, submissions, logs, and both ends of a transfer."""
