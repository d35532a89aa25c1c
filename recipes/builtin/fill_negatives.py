"""The pairs that mining left out, with a random negative: those whose positive is far away are worth the most.

python recipes/builtin/fill_negatives.py PAIRS MINED OUTPUT     MINED: anchor, positive, negative of some of PAIRS
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from isotrope.data.readers import column
from isotrope.files import written_file

NAMES = ("anchor", "positive", "negative")
SEED = 0


def main(pairs: Path, mined: Path, output: Path) -> None:
    rng = random.Random(SEED)
    kept = list(zip(*(column(mined, name) for name in NAMES), strict=True))
    known = {row[:2] for row in kept}
    others = [row for row in zip(*(column(pairs, name) for name in NAMES[:2]), strict=True) if row not in known]
    texts = [positive for _, positive, _ in kept]
    rows = kept + [(*row, rng.choice(texts)) for row in others]
    rng.shuffle(rows)
    with written_file(output) as temporary:
        temporary.write_text("".join("\t".join(row) + "\n" for row in [NAMES, *rows]), encoding="utf-8")
    print(f"{output}: {len(kept):,} mined, {len(others):,} filled")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
