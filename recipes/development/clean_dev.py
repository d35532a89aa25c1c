"""A development set that holds no pair of a test set, from the other splits of STS and SICK.

    python recipes/development/clean_dev.py DATA OUTPUT.tsv [TRAINED.tsv…]     → OUTPUT.tsv, and OUTPUT.json: the counts

Pairs of any test split of DATA (STS12–16, STS-B, SICK, MRPC) are dropped, in either order and compared by their words;
so are repetitions, and those of the files TRAINED, for methods that learn from scored pairs. Scores run from 0 to 5;
SICK's 1 to 5 are stretched. SICK is larger than all the rest, so pairs at even distances are taken of it. Nothing is
drawn at random. SMTeuroparl is left out: 603 of its 734 scores are 4 and more, so in one list with the others it ranks
texts by their origin.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import isotrope
from isotrope.data.protected_pairs import Key, key_of
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.files import write_json, written_file

SPLITS = ("stsb.dev", "sts12.train", "stsb.train", "sick.trial", "sick.train")  # the first that has a pair keeps it
SICK = 1500  # pairs at most
LEFT_OUT = ("SMTeuroparl",)

Row = tuple[str, str, str, float]


def main(data: Path, output: Path, trained: list[Path]) -> None:
    files = [data / "sts" / f"{name}.tsv.gz" for name in SPLITS]
    with tempfile.TemporaryDirectory() as folder:
        report = isotrope.leaks(files, trained, data, folder, match="pair", tests_only=True)
        rows = _distinct([row for file in files for row in _rows(Path(folder) / file.name)])
    sick = [row for row in rows if row[0] == "SICK"]
    taken = [sick[place * len(sick) // SICK] for place in range(SICK)] if len(sick) > SICK else sick
    chosen = [*(row for row in rows if row[0] not in ("SICK", *LEFT_OUT)), *taken]
    with written_file(output) as temporary:
        lines = ["subset\tsentence1\tsentence2\tscore", *("\t".join(map(str, row)) for row in chosen)]
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    counts = {
        "rows": dict(report.lines),
        "in a test set": dict(report.leaks),
        "test sets": dict(report.by_set),
        "distinct pairs left": dict(Counter(row[0] for row in rows)),
        "written": dict(Counter(row[0] for row in chosen)),
        "written in all": len(chosen),
    }
    write_json(output.with_suffix(".json"), counts)
    print(json.dumps(counts, indent=2))


def _rows(file: Path) -> list[Row]:
    """Subset (without the genre that STS-B puts before it), two sentences, and the score on the scale 0 to 5."""
    pairs = read_pairs(file)
    names = [subset.rpartition("/")[2] for subset in pairs.subsets]
    scores = [
        round((gold - 1) * 1.25 if name == "SICK" else gold, 3) for name, gold in zip(names, pairs.gold, strict=True)
    ]
    return list(zip(names, pairs.first, pairs.second, scores, strict=True))


def _distinct(rows: list[Row]) -> list[Row]:
    """Each pair once, where it stands first."""
    found: dict[Key, Row] = {}
    for row in rows:
        found.setdefault(key_of(row[1:3]), row)
    return list(found.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(file) for file in sys.argv[3:]])
