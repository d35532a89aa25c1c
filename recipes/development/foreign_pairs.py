"""Labelled pairs of other genres than `clean_dev.py` has (captions and SICK): news and science, for choosing only.

    foreign_pairs.py DATA OUTPUT     → OUTPUT/mrpc.tsv, rte.tsv, scitail.tsv: label, two sentences

Paraphrase or entailment is 1, anything else 0. Pairs of MRPC's training part that a test split of STS or SICK has, in
either order and compared by their words, are left out (MSRpar was drawn from the same news). Nothing trains on these.
"""

from __future__ import annotations

import sys
from pathlib import Path

from isotrope.data.protected_pairs import key_of
from isotrope.data.readers import column
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.files import written_file

SETS = {
    "mrpc": ("transfer/mrpc.train.tsv.gz", ("sentence1", "sentence2"), "1"),
    "rte": ("nli/rte.train.tsv.gz", ("premise", "hypothesis"), "entailment"),
    "scitail": ("nli/scitail.dev.tsv.gz", ("premise", "hypothesis"), "entailment"),
}


def main(data: Path, output: Path) -> None:
    tests = [read_pairs(file) for file in sorted((data / "sts").glob("*.test.tsv.gz"))]
    protected = {key_of(pair) for one in tests for pair in zip(one.first, one.second, strict=True)}
    for name, (place, sides, positive) in SETS.items():
        rows = zip(*(column(data / place, field) for field in ("label", *sides)), strict=True)
        kept = [(int(label == positive), *pair) for label, *pair in rows if key_of(pair) not in protected]
        output.mkdir(parents=True, exist_ok=True)
        with written_file(output / f"{name}.tsv") as temporary:
            lines = ["label\tsentence1\tsentence2", *("\t".join(map(str, row)) for row in kept)]
            temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{name}: {len(kept):,} pairs")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
