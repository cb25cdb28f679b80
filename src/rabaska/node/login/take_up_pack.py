"""`take-up ARRIVED PACKS NAME`: a pack that another program brought takes its place in the store.

Prints one JSON object: whether it is there, on its way, damaged or now in its place.
"""

import os
from typing import Any, Dict, List

from .. import files, partial_folder
from ..data import pack_format
from ..data.pack_proof import is_complete
from ..data.verify import verify

THERE, ABSENT, ON_ITS_WAY, DAMAGED, TAKEN = "there", "absent", "on its way", "damaged", "taken"


def main(argv: List[str]) -> int:
    print(files.to_json(take_up(*argv)))
    return 0


def take_up(arrived: str, packs: str, name: str) -> Dict[str, Any]:
    source, target = os.path.join(arrived, name), os.path.join(packs, name)
    if is_complete(target):
        return {"state": THERE, "have": 0, "problems": []}
    if not os.path.isdir(source) or os.path.islink(source):
        return {"state": ABSENT, "have": 0, "problems": []}
    have = sum(entry.stat().st_size for entry in os.scandir(source) if entry.is_file())
    if not is_complete(source):
        return {"state": ON_ITS_WAY, "have": have, "problems": []}
    problems = verify(source)
    if not problems and pack_format.load_manifest(source).identity != name:
        problems = ["it is another pack, {}".format(pack_format.load_manifest(source).identity)]
    if problems:
        return {"state": DAMAGED, "have": have, "problems": problems}
    os.makedirs(packs, exist_ok=True)
    aside = partial_folder.set_aside(target) if os.path.isdir(target) else ""
    os.rename(source, target)
    files.sync_folder(packs)
    if aside:
        partial_folder.remove_tree(aside)
    return {"state": TAKEN, "have": have, "problems": []}
