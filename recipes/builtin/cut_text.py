"""Passages and spans, cut from the clean corpora where they are needed: they are larger than the text they come from.

    python recipes/builtin/cut_text.py WORK [PAIRS]     WORK/text/*.txt.xz → WORK/passages.txt, distil.txt,
                                                         WORK/sources/spans.tsv and sentences.txt

A passage is a run of sentences of one document; one line in four is a single sentence instead, as people also encode
short texts. A student learns from these and from every text of the pairs (distil.txt). A span pair is a sentence and a
passage near it: the sentence before it, behind it, or taken out of it.
"""

from __future__ import annotations

import lzma
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from isotrope.files import written_file

SEED = 0
PAIRS = 400_000
WORDS = 90  # of a passage, about 120 tokens
SHORT = 32  # words of a line that counts as a sentence
SINGLE = 0.25  # lines that are one sentence
OTHERS = ("captions",)  # lines of a document are descriptions of one picture, no running text

Passage = tuple[list[str], int, int]  # the document, first sentence, the one behind the last


def main(work: Path, pairs: int = PAIRS) -> None:
    rng = random.Random(SEED)
    passages: list[str] = []
    spans: list[tuple[str, str]] = []
    for file in sorted((work / "text").glob("*.txt.xz")):
        for document in documents(file):
            if file.name.split(".")[0] in OTHERS:
                passages += document
                continue
            for cut in passages_of(document, rng):
                passages += lines_of(cut, rng)
                spans += span_of(cut, rng)
    rng.shuffle(passages)
    rng.shuffle(spans)
    (work / "sources").mkdir(parents=True, exist_ok=True)
    with written_file(work / "passages.txt") as temporary:
        temporary.write_text("".join(f"{line}\n" for line in passages), encoding="utf-8")
    with written_file(work / "sources" / "sentences.txt") as temporary:
        short = [line for line in passages if 5 <= len(line.split()) <= SHORT][:pairs]
        temporary.write_text("".join(f"{line}\n" for line in short), encoding="utf-8")
    paired = {text for file in sorted((work / "sources").glob("*.tsv.xz")) for row in rows_of(file) for text in row}
    taught = [*passages, *sorted(paired)]
    rng.shuffle(taught)
    with written_file(work / "distil.txt") as temporary:
        temporary.write_text("".join(f"{line}\n" for line in taught), encoding="utf-8")
    with written_file(work / "sources" / "spans.tsv") as temporary:
        rows = ["anchor\tpositive", *("\t".join(span) for span in spans[:pairs])]
        temporary.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    print(f"{len(passages):,} passages, {min(len(spans), pairs):,} of {len(spans):,} span pairs")
    print(f"{len(taught):,} texts for a student")


def rows_of(path: Path) -> Iterator[list[str]]:
    """The texts of each row of a source; numbers are scores."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            yield [text for text in line.rstrip("\n").split("\t") if len(text.split()) > 1]


def documents(path: Path) -> Iterator[list[str]]:
    """The sentences of each document; an empty line ends one."""
    found: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                found.append(line.strip().replace("\t", " "))
            elif found:
                yield found
                found = []
    if found:
        yield found


def passages_of(document: list[str], rng: random.Random) -> Iterator[Passage]:
    """Runs that follow each other; how many words a run may have is drawn for each."""
    start = 0
    while start < len(document):
        most, stop, words = rng.randint(WORDS // 3, WORDS), start, 0
        while stop < len(document) and (stop == start or words + len(document[stop].split()) <= most):
            words += len(document[stop].split())
            stop += 1
        yield document, start, stop
        start = stop


def lines_of(cut: Passage, rng: random.Random) -> list[str]:
    document, start, stop = cut
    return document[start:stop] if rng.random() < SINGLE else [" ".join(document[start:stop])]


def span_of(cut: Passage, rng: random.Random) -> list[tuple[str, str]]:
    """At most one pair; a passage needs two sentences, and an anchor four words."""
    document, start, stop = cut
    if stop - start < 2:
        return []
    near = [place for place in (start - 1, stop) if 0 <= place < len(document)]
    place = rng.choice([*near, *near, rng.randrange(start, stop)])
    passage = [sentence for number, sentence in enumerate(document[start:stop], start) if number != place]
    anchor = document[place]
    return [(anchor, " ".join(passage))] if len(anchor.split()) >= 4 and anchor not in passage else []


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    main(Path(folder), *map(int, rest))
