"""The texts of the comparison in docs/notes/comparison.md, from the benchmark data and the corpora that `isotrope
leaks` has cleaned.

    python recipes/compare/texts.py WORK DATA     WORK/text/*.txt.xz and DATA → WORK/compare/

Nothing here holds a sentence of an STS, SICK or transfer test set: what `leaks` did not clean is checked line by line.
The questions for supcon are those of TREC's training part.
"""

from __future__ import annotations

import lzma
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from isotrope.data.leaks import protect
from isotrope.data.readers import column, read
from isotrope.data.record_types import record_type_named
from isotrope.evaluation.benchmark_files import protected_files

RUNNING = ("wikinews_docs", "wiki2_docs", "forum_docs")
LINES = 40_000  # of each
TURNS = 60_000
LINKS = 40_000
NLI = ("snli.dev", "mnli.dev", "lingnli.train", "wikinli.train")


def main(work: Path, data: Path) -> None:
    folder = work / "compare"
    folder.mkdir(exist_ok=True)
    running = [document for name in RUNNING for document in _documents(work / "text" / f"{name}.txt.xz", LINES)]
    _write(folder / "text.txt", "\n\n".join("\n".join(document) for document in running))
    _write(
        folder / "dialogues.txt",
        "\n\n".join("\n".join(talk) for talk in _documents(work / "text" / "dialog_sgd.txt.xz", TURNS)),
    )
    protected = protect(protected_files(data))
    _table(
        folder / "linked.tsv",
        ("sentence", "entity"),
        [row for row in _linked(data) if not protected.found_in(row[0])][:LINKS],
    )
    triples = zip(*(column(work / "triples.tsv", name) for name in ("anchor", "positive", "negative")), strict=True)
    _table(folder / "triples.tsv", ("anchor", "positive", "negative"), list(triples))
    pairs = [row for name in NLI for row in _columns(data / "nli" / f"{name}.tsv.gz", "premise", "hypothesis", "label")]
    random.Random(0).shuffle(pairs)
    _table(
        folder / "pairs.tsv",
        ("premise", "hypothesis", "label"),
        [row for row in pairs if not any(protected.found_in(t) for t in row[:2])],
    )
    _table(
        folder / "questions.tsv",
        ("text", "label"),
        _columns(data / "transfer" / "trec.train.tsv.gz", "sentence", "label"),
    )


def _documents(file: Path, lines: int) -> list[list[str]]:
    """Whole documents drawn at random, until they have so many lines."""
    documents: dict[int, list[str]] = {}
    for record in read(file, record_type_named("documents")):
        if record.texts[0]:
            documents.setdefault(record.document, []).append(record.texts[0])
    drawn = list(documents.values())
    random.Random(0).shuffle(drawn)
    found: list[list[str]] = []
    for document in drawn:
        found.append(document)
        lines -= len(document)
        if lines <= 0:
            break
    return found


def _linked(data: Path) -> list[tuple[str, ...]]:
    """Sentences of Wikipedia with the article that they mention."""
    with lzma.open(data / "corpora" / "wiki_docs.txt.xz", "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    mentions = data / "entity" / "wiki_title_mentions.tsv.xz"
    found = [(lines[int(line)], entity) for line, entity in _columns(mentions, "line", "entity")]
    random.Random(0).shuffle(found)
    return found


def _columns(path: Path, *names: str) -> list[tuple[str, ...]]:
    return list(zip(*(column(path, name) for name in names), strict=True))


def _table(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    _write(path, "\n".join("\t".join(row) for row in (header, *rows)))


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")
    print(path, text.count("\n") + 1, "lines")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
