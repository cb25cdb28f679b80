"""`stored STORE CODE PACK…`: which of these inputs of a run are not in the store, or not complete.

Prints {"missing": [names]}. Nothing is read but sizes.
"""

import os
from typing import List

from .. import files
from ..data.pack_proof import is_complete


def main(argv: List[str]) -> int:
    store, code, packs = argv[0], argv[1], argv[2:]
    missing = [] if os.path.isfile(os.path.join(store, "code", code + ".tar")) else [code]
    missing += [pack for pack in packs if not is_complete(os.path.join(store, "packs", pack))]
    print(files.to_json({"missing": missing}))
    return 0
