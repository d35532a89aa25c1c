"""The text behind the built-in encoders, from the corpora that `isotrope leaks` has cleaned.

    python recipes/builtin/texts.py sentences WORK          WORK/text/*.txt.xz → WORK/sentences.txt
    python recipes/builtin/texts.py supervised WORK DATA    NLI files and captions → WORK/*.tsv

Everything is drawn with a fixed seed. Nothing here holds a sentence of an STS, SICK or transfer set: what `leaks` did
not clean is checked line by line.
"""

from __future__ import annotations

import lzma
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from isotrope.data.leaks import protect
from isotrope.data.protected_sentences import Protected
from isotrope.data.readers import column, read
from isotrope.data.record_types import record_type_named
from isotrope.evaluation.benchmark_files import protected_files

CONVERSATIONAL = ("captions", "forum_docs", "wikinews_docs")  # nearest to everyday sentences: all of them
PERMITTED = ("snli", "mnli", "cad_snli", "joci", "wikinli")  # LingNLI states no licence
PAIR_FILES = (
    *("snli.dev", "snli.test", "mnli.dev", "qnli.dev", "joci.train", "joci.dev"),
    *("cad_snli.train", "cad_snli.dev", "cad_snli.test", "wikinli.train", "wikinli.test"),
)
CAPTION_PAIRS = 10_000
SENTENCES = 500_000


def sentences(work: Path) -> None:
    """The mix for contrast."""
    mixed: list[str] = []
    for file in sorted((work / "text").glob("*.txt.xz")):
        whole = file.name.removesuffix(".txt.xz") in CONVERSATIONAL
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                text = line.strip()
                if 5 <= text.count(" ") + 1 <= 40 and (whole or number % 4 == 0):
                    mixed.append(text)
    random.Random(0).shuffle(mixed)
    (work / "sentences.txt").write_text("\n".join(mixed[:SENTENCES]) + "\n", encoding="utf-8")


def supervised(work: Path, data: Path) -> None:
    protected = protect(protected_files(data))
    triples = list(fields(work / "text" / "triples.tsv.gz", "source", "premise", "entailment", "contradiction"))
    permitted = [row[1:] for row in triples if row[0] in PERMITTED]
    pairs = _more_pairs(data, permitted, protected)
    captions = _caption_triples(work)
    _write(work / "triples.tsv", [row[1:] for row in triples])
    _write(work / "triples-both.tsv", _both_ways([row[1:] for row in triples]))
    _write(work / "permitted-captions.tsv", _both_ways(permitted + pairs) + captions)
    print({"triples": len(triples), "permitted": len(permitted), "pairs": len(pairs), "captions": len(captions)})


Triple = tuple[str, ...]


def _both_ways(triples: list[Triple]) -> list[Triple]:
    return triples + [(positive, anchor, negative) for anchor, positive, negative in triples]


def _more_pairs(data: Path, triples: list[Triple], protected: Protected) -> list[Triple]:
    """Entailments that are in no triple; the negative is a contradiction of the same premise, or else some other
    hypothesis.
    """
    known = {triple[:2] for triple in triples}
    found: dict[tuple[str, str], None] = {}
    against: dict[str, list[str]] = defaultdict(list)
    for name in PAIR_FILES:
        for label, premise, hypothesis in fields(data / "nli" / f"{name}.tsv.gz", "label", "premise", "hypothesis"):
            if label == "contradiction":
                against[premise].append(hypothesis)
            elif label == "entailment" and (premise, hypothesis) not in known and premise != hypothesis:
                found[premise, hypothesis] = None
    rng = random.Random(0)
    others = [hypothesis for _, hypothesis in found]
    pairs = [(*pair, rng.choice(against.get(pair[0]) or others)) for pair in found]
    return [triple for triple in pairs if not any(protected.found_in(text) for text in triple)]


def _caption_triples(work: Path) -> list[Triple]:
    """Two captions of one picture, and one of another."""
    rng = random.Random(0)
    pictures: dict[int, list[str]] = defaultdict(list)
    for record in read(work / "text" / "captions.txt.xz", record_type_named("documents")):
        if record.texts[0]:
            pictures[record.document].append(record.texts[0])
    groups = [captions for captions in pictures.values() if len(captions) > 1]
    return [
        (*rng.sample(groups[i], 2), rng.choice(rng.choice(groups)))
        for i in rng.choices(range(len(groups)), k=CAPTION_PAIRS)
    ]


def fields(path: Path, *names: str) -> Iterator[tuple[str, ...]]:
    return zip(*(column(path, name) for name in names), strict=True)


def _write(path: Path, triples: list[Triple]) -> None:
    lines = ["anchor\tpositive\tnegative", *("\t".join(triple) for triple in triples)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    stage, *places = sys.argv[1:]
    {"sentences": sentences, "supervised": supervised}[stage](*map(Path, places))
