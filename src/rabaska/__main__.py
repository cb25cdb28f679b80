"""`python -m rabaska` is the program `rabaska`."""

import sys


def main() -> None:
    """Start the command line; Ctrl-C is quiet from the first import on."""
    try:
        from rabaska.cli import main as command_line
        from rabaska.node import encoding

        encoding.allow_any_name()
        command_line()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
