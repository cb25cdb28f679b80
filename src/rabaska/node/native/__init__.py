"""What is compiled: a library in plain C for each kind of processor, and how Python calls it."""
