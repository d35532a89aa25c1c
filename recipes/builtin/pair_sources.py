"""The pairs of the built-in encoder: what is held out for choosing, and what is trained on.

    pair_sources.py WORK     WORK/text/*.tsv.*, clean by `isotrope leaks` → WORK/sources, WORK/held

Two retrieval sets choose, and are not reported: titles → passages and questions → answers. Both hold whole sources that
are never trained on, next to a share of the others, so that a choice by them is also one for foreign text. No text of a
held-out row is trained on under another title. Everything is drawn with a fixed seed.
"""

from __future__ import annotations

import lzma
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from isotrope.data.readers import column
from isotrope.files import written_file

SEED = 0
UNSEEN = ("18f", "18f_section", "se_skeptics", "se_quantumcomputing", "se_coffee", "mlqa_en")  # whole sources
HELD_SHARE = {"titles": 0.03, "questions": 0.04}  # of the groups of the others
QUERIES = 600  # of each set
MOST = {"e2e": 2_000, "disfl_qa": 5_000, "wikisplit": 8_000}  # much alike: false negatives of each other
PER_PICTURE = 4  # pairs of captions of one picture

Row = tuple[str, str, str]  # anchor, positive, source


def main(work: Path) -> None:
    titles = read(work / "text" / "title_passage.tsv.xz", "title", "passage", "source")
    questions = read(work / "text" / "question_answer.tsv.xz", "question", "answer", "source")
    held = {"titles": held_rows(titles, "titles"), "questions": held_rows(questions, "questions")}
    distractors = [passage for _, passage, _ in held["titles"]]
    write_set(work / "held" / "retrieval", "titles", held["titles"], [])
    write_set(work / "held" / "retrieval", "questions", held["questions"], distractors)
    hidden = {text for rows in held.values() for anchor, positive, _ in rows for text in (anchor, positive)}
    sources = {
        "titles": titles,
        "questions": questions,
        "paraphrases": few_of_each(read(work / "text" / "paraphrases.tsv.xz", "sentence1", "sentence2", "source")),
        "captions": few_captions(work / "text" / "captions_same_image.tsv.gz"),
    }
    for name, rows in sources.items():
        kept = [row[:2] for row in dict.fromkeys(rows) if not hidden & set(row[:2]) and row[0] != row[1]]
        random.Random(SEED).shuffle(kept)
        write(work / "sources" / f"{name}.tsv.xz", ("anchor", "positive"), kept)
    scored = read(work / "text" / "scored_captions.tsv.gz", "sentence1", "sentence2", "score")
    write(work / "sources" / "scored.tsv.xz", ("sentence1", "sentence2", "score"), scored)


def read(path: Path, *names: str) -> list[Row]:
    """Rows of three columns; the third may be missing."""
    return list(zip(*(column(path, name) for name in names), strict=True))


def site(source: str) -> str:
    return source.removesuffix("_body").removesuffix("_more")


def held_rows(rows: Sequence[Row], name: str) -> list[Row]:
    """All rows of the unseen sources, and a share of the anchors of the others, with all their rows."""
    others = sorted({anchor for anchor, _, source in rows if site(source) not in UNSEEN})
    drawn = set(random.Random(SEED).sample(others, int(HELD_SHARE[name] * len(others))))
    return [row for row in rows if site(row[2]) in UNSEEN or row[0] in drawn]


def write_set(folder: Path, name: str, rows: Sequence[Row], distractors: Iterable[str]) -> None:
    """A retrieval set: every held-out text is a document, some of the anchors are queries, evenly over the sources."""
    documents = {text: f"d{number}" for number, text in enumerate(dict.fromkeys([*(r[1] for r in rows), *distractors]))}
    wanted: dict[str, set[str]] = defaultdict(set)
    by_source: dict[str, list[str]] = defaultdict(list)
    for anchor, positive, source in rows:
        if anchor not in wanted:
            by_source[site(source)].append(anchor)
        wanted[anchor].add(documents[positive])
    rng = random.Random(SEED)
    for anchors in by_source.values():
        rng.shuffle(anchors)
    turns = [anchors[turn] for turn in range(QUERIES) for anchors in by_source.values() if turn < len(anchors)]
    queries = {anchor: f"q{number}" for number, anchor in enumerate(turns[:QUERIES])}
    corpus = [(number, "", text) for text, number in documents.items()]
    write(folder / f"{name}.corpus.tsv.xz", ("doc_id", "title", "text"), corpus)
    write(folder / f"{name}.queries.tsv.xz", ("query_id", "text"), [(number, text) for text, number in queries.items()])
    judged = [(queries[text], document, "1") for text in queries for document in sorted(wanted[text])]
    write(folder / f"{name}.qrels.tsv.xz", ("query_id", "doc_id", "score"), judged)


def few_of_each(rows: Sequence[Row]) -> list[Row]:
    taken: Counter[str] = Counter()
    shuffled = random.Random(SEED).sample(list(rows), len(rows))
    kept = []
    for row in shuffled:
        taken[row[2]] += 1
        if taken[row[2]] <= MOST.get(row[2], len(rows)):
            kept.append(row)
    return kept


def few_captions(path: Path) -> list[Row]:
    """Pairs of one picture: the file lists all pairs of a picture in a row, so a group shares captions."""
    pairs = list(zip(column(path, "caption1"), column(path, "caption2"), strict=True))
    groups: list[list[tuple[str, str]]] = []
    known: set[str] = set()
    for pair in pairs:
        if not known & set(pair):
            groups.append([])
            known = set()
        groups[-1].append(pair)
        known |= set(pair)
    rng = random.Random(SEED)
    return [(*pair, "captions") for group in groups for pair in rng.sample(group, min(PER_PICTURE, len(group)))]


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Lower-cased, as the encoder reads it anyway: a twelfth less to carry."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(row).lower() for row in rows]
    with written_file(path) as temporary, lzma.open(temporary, "wt", encoding="utf-8", preset=9) as target:
        target.writelines(f"{line}\n" for line in ["\t".join(header), *lines])
    print(f"{path}: {len(lines):,} rows, {path.stat().st_size / 2**20:.2f} MiB", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
