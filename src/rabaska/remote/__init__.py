"""The only room that starts processes or opens connections."""
