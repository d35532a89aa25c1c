"""The texts of the ledger in docs/notes/comparison.md, from the benchmark data and the corpora.

    python recipes/compare/texts.py DATA FOLDER

The mix is that of the built-in encoder: captions, forum and news whole, a quarter of everything else. Sentences and
documents are drawn from it with a fixed seed and in the same shares. No line holds a sentence of an STS, SICK or
transfer test set, and none of the labelled sets is one that a model is judged by.
"""

from __future__ import annotations

import lzma
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isotrope.data.leaks import protect
from isotrope.data.protected_sentences import Protected
from isotrope.data.readers import column
from isotrope.evaluation.benchmark_files import protected_files

LEFT_OUT = ("textbooks_docs", "wikitext2.test", "wikitext2.valid")  # as for the built-in encoder
CONVERSATIONAL = ("captions", "forum_docs", "wikinews_docs")  # nearest to everyday sentences: all of them
SENTENCES, DOCUMENT_LINES = 200_000, 200_000
DIALOGUE_LINES, LINKS = 60_000, 60_000
NLI = ("snli.dev", "mnli.dev", "lingnli.train", "wikinli.train", "cad_snli.train")
WORDS = range(5, 41)


def main(data: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    protected = protect(protected_files(data))
    corpora = {name: lines for name, lines in _corpora(data) if name not in LEFT_OUT}
    mix = _mix(corpora)
    sentences = _first(mix, SENTENCES, protected)
    _write(folder / "sentences.txt.xz", sentences)
    _write(folder / "twenty_thousand.txt.xz", sentences[:20_000])  # for what needs several passes
    shares = Counter(name for name, _ in mix)
    shares.pop("captions")  # they have no documents
    _write(folder / "documents.txt.xz", _documents(corpora, shares, protected))
    talks = _drawn(corpora["dialog_sgd"], DIALOGUE_LINES)
    _write(folder / "dialogues.txt.xz", _joined(talk for talk in talks if not _leaks(talk, protected)))
    _table(folder / "linked.tsv.xz", ("sentence", "entity"), _linked(data, corpora["wiki_docs"], protected))
    nli = data / "nli"
    triples = _rows(nli / "triples.tsv.gz", "premise", "entailment", "contradiction")
    _table(folder / "triples.tsv.xz", ("anchor", "positive", "negative"), _clean(triples, protected))
    _table(folder / "plain_pairs.tsv.xz", ("anchor", "positive"), [row[:2] for row in _clean(triples, protected)])
    pairs = [row for name in NLI for row in _rows(nli / f"{name}.tsv.gz", "premise", "hypothesis", "label")]
    _table(folder / "labelled_pairs.tsv.xz", ("premise", "hypothesis", "label"), _clean(pairs, protected))
    scored = _rows(data / "pairs" / "scored_captions.tsv.gz", "sentence1", "sentence2", "score")
    _table(folder / "scored_pairs.tsv.xz", ("sentence1", "sentence2", "score"), _clean(scored, protected))
    labelled = _rows(data / "clustering" / "stackoverflow.tsv.gz", "sentence", "label")
    _table(folder / "labelled.tsv.xz", ("text", "label"), _clean(labelled, protected))


def _corpora(data: Path) -> Iterator[tuple[str, list[str]]]:
    for file in sorted((data / "corpora").glob("*.txt.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            yield file.name.removesuffix(".txt.xz"), [line.strip() for line in lines]


def _mix(corpora: dict[str, list[str]]) -> list[tuple[str, str]]:
    """(corpus, sentence) in random order."""
    mixed = [
        (name, line)
        for name, lines in corpora.items()
        for number, line in enumerate(lines)
        if (name in CONVERSATIONAL or number % 4 == 0) and line.count(" ") + 1 in WORDS
    ]
    random.Random(0).shuffle(mixed)
    return mixed


def _first(mix: Iterable[tuple[str, str]], count: int, protected: Protected) -> list[str]:
    found: dict[str, None] = {}
    for _, line in mix:
        if line not in found and not protected.found_in(line):
            found[line] = None
        if len(found) == count:
            break
    return list(found)


def _documents(corpora: dict[str, list[str]], shares: Counter[str], protected: Protected) -> list[str]:
    documents = [
        [line for line in document if not protected.found_in(line)]
        for name, share in shares.items()
        for document in _drawn(corpora[name], DOCUMENT_LINES * share // shares.total())
    ]
    random.Random(0).shuffle(documents)
    return _joined(documents)


def _drawn(lines: Sequence[str], count: int) -> list[list[str]]:
    """Documents drawn at random, until they have so many lines; of a very long one, a run of 200 lines."""
    documents: list[list[str]] = [[]]
    for line in lines:
        if line and len(documents[-1]) < 200:
            documents[-1].append(line)
        elif documents[-1]:
            documents.append([line] if line else [])
    random.Random(0).shuffle(documents)
    found: list[list[str]] = []
    while documents and sum(map(len, found)) < count:
        found.append(documents.pop())
    return found


def _joined(documents: Iterable[list[str]]) -> list[str]:
    return [line for document in documents if len(document) > 1 for line in (*document, "")]


def _leaks(texts: Iterable[str], protected: Protected) -> bool:
    return any(protected.found_in(text) for text in texts)


def _linked(data: Path, lines: Sequence[str], protected: Protected) -> list[tuple[str, ...]]:
    """Sentences of Wikipedia with the article that they mention."""
    mentions = _rows(data / "entity" / "wiki_title_mentions.tsv.xz", "line", "entity")
    random.Random(0).shuffle(mentions)
    return _clean([(lines[int(line)], entity) for line, entity in mentions[: 2 * LINKS]], protected, shuffled=False)[
        :LINKS
    ]


def _clean(rows: list[tuple[str, ...]], protected: Protected, shuffled: bool = True) -> list[tuple[str, ...]]:
    kept = [row for row in rows if not _leaks(row, protected)]
    if shuffled:
        random.Random(0).shuffle(kept)
    return kept


def _rows(path: Path, *names: str) -> list[tuple[str, ...]]:
    return list(zip(*(column(path, name) for name in names), strict=True))


def _table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    _write(path, ["\t".join(row) for row in (header, *rows)])


def _write(path: Path, lines: Sequence[str]) -> None:
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print(f"{path.name}: {sum(map(bool, lines)):,} lines, the header of a table among them")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
