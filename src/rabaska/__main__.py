"""`python -m rabaska` is the program `rabaska`."""

from rabaska.cli import main

main()
