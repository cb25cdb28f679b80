"""Write the pages of docs/reference from the code: `python docs/generate.py [FOLDER]`."""

import sys
from pathlib import Path

import cli_page

from rabaska.settings import reference


def main() -> None:
    here = Path(__file__).resolve().parent
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here / "reference"
    reference.write(folder)
    (folder / "cli.md").write_text(cli_page.page(), "utf-8")


if __name__ == "__main__":
    main()
