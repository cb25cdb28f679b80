"""What happens to text on its way from a cluster: it is cut, and others write in between."""

import random
from collections.abc import Iterator

TEXTS_PER_SEED = 20
SYMBOLS = '\n\r\t |<>/={}[]":,;%*_.-0123456789QRHEFCXSTdqwrnuljobstateJob²٣é\x00\x1b\u2028'


def damaged(text: str, noise: tuple[str, ...], seed: int) -> Iterator[str]:
    """The text with an end lost, a beginning lost, and lines of others in it."""
    chance = random.Random(seed)
    for _ in range(TEXTS_PER_SEED):
        lines = text.splitlines(keepends=True)
        for _ in range(chance.randrange(4)):
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(noise))
        whole = "".join(lines)
        first = chance.choice([0, 0, chance.randrange(len(whole) + 1)])
        last = chance.choice([len(whole), chance.randrange(len(whole) + 1)])
        yield whole[first:last]


def garbled(text: str, seed: int) -> Iterator[str]:
    """The text with pieces lost, doubled, moved, and written over at random."""
    chance = random.Random(seed)
    for _ in range(TEXTS_PER_SEED):
        changed = text
        for _ in range(chance.randrange(1, 6)):
            first = chance.randrange(len(changed) + 1)
            last = min(len(changed), first + chance.randrange(40))
            moved = changed[first:last]
            written = "".join(chance.choices(SYMBOLS, k=chance.randrange(12)))
            instead = chance.choice(["", moved * 2, written, moved + written])
            changed = changed[:first] + instead + changed[last:]
        yield changed
