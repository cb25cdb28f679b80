"""A folder for the program's Python path: it holds nothing that a program could import."""
