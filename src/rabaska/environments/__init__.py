"""How the program's Python comes to be on a cluster: a recipe in, shell lines out."""
