"""How hybrid search joins cosines and BM25: every candidate on development sets, the chosen one alone on reported sets.

    python benchmarks/fusion.py DATA [--models builtin,builtin-static] [--cache FOLDER]     ways to join, and weights
    python benchmarks/fusion.py DATA --words                                                settings of BM25
    python benchmarks/fusion.py DATA --reported                                             what search and judge use

Development sets, 600 queries each, nDCG@10 × 100. None is reported, and no pair of a query and its document was trained
on. Their text is not all new to the encoders: the corpora of pre-training have sentences of nearly all documents of
titles, of 61 % of those of forums, and of 7 % and 6 % of those of mlqa and wikiqa. Docstrings, textbooks and lcqmc are
new to them.

    titles, forums, mlqa   title → passage and question → answer of the sources that recipes/builtin/pair_sources.py
                           holds out whole; the documents are all passages of these sources. The checkpoint of
                           `builtin` was chosen by some of these rows
    docstrings             the first sentence of a docstring of the standard library finds the rest of it
    wikiqa                 a question of the training part finds its answer among the sentences of all questions
    textbooks              a sentence finds the eleven that it stood among; twice what the encoders read
    lcqmc                  a Chinese question finds another of the same meaning: encoders that do not know the language
"""

from __future__ import annotations

import argparse
import lzma
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import isotrope
from isotrope.data.readers import column
from isotrope.demo import standard_library
from isotrope.evaluation.retrieval import read_sets
from isotrope.measures.ranking_measures import ndcg
from isotrope.measures.score_fusion import WEIGHT, fuse
from isotrope.search.query_words import words_of
from isotrope.search.word_index import K1, B
from isotrope.search.word_postings import postings
from isotrope.search.word_stems import AUTO, NONE, Sample, chosen_stemmer, stemming

QUERIES, DEPTH, FIRST, RESAMPLES = 600, 100, 10, 2000
UNSEEN = ("18f", "18f_section", "se_skeptics", "se_quantumcomputing", "se_coffee", "mlqa_en")
TOGETHER = 12  # sentences of a document of textbooks
Floats = npt.NDArray[np.float64]
Row = tuple[str, str]


class Found(NamedTuple):
    """A set: ``gains[i]`` are the documents of query i by their rows."""

    queries: Sequence[str]
    documents: Sequence[str]
    gains: Sequence[dict[int, float]]


class Candidates(NamedTuple):
    """The rows of both rankings of a query; a rank is infinite where a ranking does not name the row."""

    rows: npt.NDArray[np.int64]
    ranks: tuple[Floats, Floats]
    scores: tuple[Floats, Floats]

    def named(self, side: int) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.ranks[side])


Fusion = Callable[[Candidates, float], Floats]


# Sets


def development(data: Path) -> dict[str, Found]:
    titles = three(data / "pairs" / "title_passage.tsv.xz", "title", "passage", "source")
    questions = three(data / "pairs" / "question_answer.tsv.xz", "question", "answer", "source")
    unseen = [(one, two, site(source)) for one, two, source in [*titles, *questions] if site(source) in UNSEEN]
    passages = [passage for _, passage, _ in unseen]
    kinds = {"titles": "18f", "forums": "se_", "mlqa": "mlqa"}
    sets = {
        name: drawn([row[:2] for row in unseen if row[2].startswith(start)], passages) for name, start in kinds.items()
    }
    sets["docstrings"] = drawn([(first, " ".join(rest)) for first, *rest in standard_library() if rest])
    answers = three(data / "retrieval" / "wikiqa.train.tsv.gz", "question", "answer_sentence", "label")
    right = [(question, answer) for question, answer, label in answers if label == "1"]
    sets["wikiqa"] = drawn(right, [answer for _, answer, _ in answers])
    sets["textbooks"] = drawn([*removed(data / "corpora" / "textbooks_docs.txt.xz")])
    scored = three(data / "zh" / "lcqmc.dev.tsv.gz", "sentence1", "sentence2", "score")
    sets["lcqmc"] = drawn([(one, two) for one, two, score in scored if float(score) == 1])
    return sets


def reported(data: Path) -> dict[str, Found]:
    found = (one for one in read_sets(data) if one.own is None)
    return {one.name: Found(one.queries, one.documents, [dict(gains) for gains in one.gains]) for one in found}


def three(path: Path, *names: str) -> list[tuple[str, str, str]]:
    return list(zip(*(column(path, name) for name in names), strict=True))


def site(source: str) -> str:
    return source.removesuffix("_body").removesuffix("_more")


def removed(path: Path) -> Iterable[Row]:
    """Of two stretches of each section: a sentence of 8 to 30 words, and the others."""
    rng = random.Random(0)
    with lzma.open(path, "rt", encoding="utf-8") as text:
        sections = text.read().split("\n\n")
    for section in sections:
        sentences = [line for line in section.split("\n") if line.strip()]
        for start in (0, TOGETHER):
            stretch = sentences[start : start + TOGETHER]
            fitting = [place for place, one in enumerate(stretch) if 8 <= len(one.split()) <= 30]
            if len(stretch) == TOGETHER and fitting:
                taken = rng.choice(fitting)
                yield stretch[taken], " ".join(stretch[:taken] + stretch[taken + 1 :])


def drawn(rows: Sequence[Row], others: Sequence[str] = ()) -> Found:
    documents = {text: row for row, text in enumerate(dict.fromkeys([*(text for _, text in rows), *others]))}
    gains: dict[str, dict[int, float]] = {}
    for query, text in rows:
        gains.setdefault(query, {})[documents[text]] = 1.0
    queries = sorted(gains)
    random.Random(0).shuffle(queries)
    return Found(queries[:QUERIES], list(documents), [gains[query] for query in queries[:QUERIES]])


# Scores of all documents


def cosines(found: Found, name: str, model: str, cache: Path | None) -> Floats:
    sides = (
        vectors(texts, f"{model}.{name}.{side}", model, cache) for side, texts in (("q", found[0]), ("d", found[1]))
    )
    queries, documents = sides
    return np.asarray(queries @ documents.T, dtype=np.float64)


def vectors(texts: Sequence[str], name: str, model: str, cache: Path | None) -> npt.NDArray[np.float32]:
    file = None if cache is None else cache / f"{name}.npy"
    if file is not None and file.exists():
        known: npt.NDArray[np.float32] = np.load(file)
        if len(known) == len(texts):
            return known
    if model not in ENCODERS:
        ENCODERS[model] = isotrope.load(model)
    made = np.asarray(ENCODERS[model].encode(list(texts), normalize_embeddings=True, show_progress_bar=False))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, made)
    return made


ENCODERS: dict[str, isotrope.Encoder] = {}


def weights(
    found: Found,
    k1: float = K1,
    b: float = B,
    left_out: Iterable[str] = (),
    share: float = 1.0,
    stemmer: str = AUTO,
) -> Floats:
    """BM25 as search has it. ``share``: words of a query that more documents have are left out, unless all are so."""
    stop, stem = frozenset(left_out), stems_of(found, stemmer)
    kept = ([stem(word) for word in words_of(text) if word not in stop] for text in found.documents)
    vocabulary, stored = postings(kept, k1, b)
    counts = np.diff(stored["indptr"])
    shape = len(vocabulary), len(found.documents)
    known = csr_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=shape)
    scores = []
    for query in found.queries:
        asked = [stem(word) for word in words_of(query) if word not in stop]
        words = [vocabulary[word] for word in asked if word in vocabulary]
        words = [word for word in words if counts[word] <= share * shape[1]] or words
        scores.append(np.asarray(known[words].sum(axis=0)).ravel() if words else np.zeros(shape[1]))
    return np.array(scores, dtype=np.float64)


def stems_of(found: Found, stemmer: str = AUTO) -> Callable[[str], str]:
    sample = Sample()
    for document in found.documents:
        sample.see(document)
    return stemming(chosen_stemmer(stemmer, sample.texts))


# Ways to join


def best(scores: Floats, count: int) -> npt.NDArray[np.int64]:
    """The rows with the highest scores, equal ones in order; only those that may be among them are sorted."""
    some = np.arange(len(scores))
    if len(scores) > 4 * count:
        some = np.flatnonzero(scores >= np.partition(scores, len(scores) - count)[len(scores) - count])
    return some[np.argsort(-scores[some], kind="stable")[:count]]


def candidates(dense: Floats, lexical: Floats, depth: int) -> Candidates:
    by_vector, by_word = best(dense, depth), best(lexical, depth)
    by_word = by_word[lexical[by_word] > 0]
    rows = np.array(list(dict.fromkeys([*by_vector.tolist(), *by_word.tolist()])))
    ranks = []
    for ranked in (by_vector, by_word):
        places = {row: rank for rank, row in enumerate(ranked.tolist(), 1)}
        ranks.append(np.array([places.get(row, np.inf) for row in rows.tolist()]))
    return Candidates(rows, (ranks[0], ranks[1]), (dense[rows], lexical[rows]))


def by_ranks(constant: int) -> Fusion:
    return lambda found, weight: sum(
        share / (constant + ranks) for share, ranks in zip((weight, 1 - weight), found.ranks, strict=True)
    )


def by_scores(scale: Callable[[Floats, Floats, int], Floats], both: bool = True) -> Fusion:
    """``scale`` has all scores, those that say what is usual, and the side. ``both``: each candidate has both scores;
    else what a ranking did not find counts as its lowest."""

    def fusion(found: Candidates, weight: float) -> Floats:
        total = np.zeros(len(found.rows))
        for side, share in enumerate((weight, 1 - weight)):
            named = np.ones(len(found.rows), dtype=np.bool_) if both else found.named(side)
            if named.any():
                scaled = scale(found.scores[side], found.scores[side][named], side)
                total += share * np.where(named, scaled, scaled[named].min())
        return total

    return fusion


def between(scores: Floats, low: float, high: float) -> Floats:
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def min_max(scores: Floats, usual: Floats, side: int) -> Floats:
    return between(scores, usual.min(), usual.max())


def theoretical(scores: Floats, usual: Floats, side: int) -> Floats:
    """The lowest that can be: −1 for a cosine, 0 for BM25."""
    return between(scores, (-1.0, 0.0)[side], usual.max())


def plain(scores: Floats, usual: Floats, side: int) -> Floats:
    """The cosine as it is, BM25 by its maximum."""
    return scores if side == 0 else between(scores, 0.0, usual.max())


def deviations(scores: Floats, usual: Floats, side: int) -> Floats:
    return (scores - usual.mean()) / usual.std() if usual.std() > 0 else np.zeros_like(scores)


WAYS: dict[str, tuple[int, Fusion]] = {
    "ranks, k 60": (DEPTH, by_ranks(60)),
    "ranks, k 20": (DEPTH, by_ranks(20)),
    "ranks, k 5": (DEPTH, by_ranks(5)),
    "ranks, k 60, depth 1000": (1000, by_ranks(60)),
    "min-max": (DEPTH, by_scores(min_max, both=False)),
    "min-max, both scores": (DEPTH, by_scores(min_max)),
    "min-max, both, depth 1000": (1000, by_scores(min_max)),
    "theoretical, both scores": (DEPTH, by_scores(theoretical)),
    "cosine + BM25/max, both": (DEPTH, by_scores(plain)),
    "standardised": (DEPTH, by_scores(deviations, both=False)),
    "standardised, both scores": (DEPTH, by_scores(deviations)),
    "standardised, both, depth 1000": (1000, by_scores(deviations)),
}
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
BEFORE, CHOSEN = ("ranks, k 60", 0.5), ("standardised, both scores", WEIGHT)


# Measures


def quality(orders: Iterable[Sequence[int]], found: Found) -> Floats:
    """nDCG@10 of each query."""
    gains = np.zeros((len(found.queries), FIRST))
    for number, (order, wanted) in enumerate(zip(orders, found.gains, strict=True)):
        some = [wanted.get(int(row), 0.0) for row in order[:FIRST]]
        gains[number, : len(some)] = some
    return np.asarray(100 * ndcg(gains, [list(wanted.values()) for wanted in found.gains], FIRST))


def parts(dense: Floats, lexical: Floats, found: Found) -> dict[str, Floats]:
    orders = {
        "dense": [best(scores, FIRST) for scores in dense],
        "lexical": [[row for row in best(one, FIRST) if one[row] > 0] for one in lexical],
    }
    return {name: quality(order, found) for name, order in orders.items()}


def joined(pool: Sequence[Candidates], fusion: Fusion, weight: float, found: Found) -> Floats:
    return quality((one.rows[np.argsort(-fusion(one, weight), kind="stable")] for one in pool), found)


def apart(differences: Sequence[Floats]) -> str:
    """The mean over sets, and its 95 % interval by a bootstrap of the queries of each."""
    rng = np.random.default_rng(0)
    draws = [one[rng.integers(len(one), size=(RESAMPLES, len(one)))].mean(axis=1) for one in differences]
    low, high = np.percentile(np.mean(draws, axis=0), [2.5, 97.5])
    return f"{np.mean([one.mean() for one in differences]):+.2f} [{low:+.2f}, {high:+.2f}]"


def line(label: str, means: Sequence[float]) -> str:
    return f"{label:36}" + "".join(f"{mean:15.1f}" for mean in means) + f"{np.mean(means):9.2f}"


def head(label: str, names: Iterable[str]) -> None:
    print(f"\n{label:36}" + "".join(f"{name:>15}" for name in names) + f"{'mean':>9}", flush=True)


# Tables


def choose(sets: dict[str, Found], models: Sequence[str], cache: Path | None) -> None:
    """Every way with every weight; then the best weight of each way over all models, against the other ways."""
    scores: dict[tuple[str, float], dict[tuple[str, str], Floats]] = {}
    words = {name: weights(found) for name, found in sets.items()}
    for model in models:
        alone: dict[str, dict[str, Floats]] = {}
        for name, found in sets.items():
            dense = cosines(found, name, model, cache)
            alone[name] = parts(dense, words[name], found)
            pools = {
                depth: [candidates(*pair, depth) for pair in zip(dense, words[name], strict=True)]
                for depth in {depth for depth, _ in WAYS.values()}
            }
            for way, (depth, fusion) in WAYS.items():
                for share in SHARES:
                    of_way = scores.setdefault((way, share), {})
                    of_way[model, name] = joined(pools[depth], fusion, share, found)
        head(f"{model}: way, weight of the cosine", sets)
        for part in ("dense", "lexical"):
            print(line(part, [alone[name][part].mean() for name in sets]))
        for (way, share), values in scores.items():
            print(line(f"{way:31}{share}", [values[model, name].mean() for name in sets]), flush=True)

    def per_set(key: tuple[str, float]) -> list[Floats]:
        return [np.mean([scores[key][model, name] for model in models], axis=0) for name in sets]

    def best_weight(way: str, left_out: int | None = None) -> float:
        means = {share: [one.mean() for one in per_set((way, share))] for share in SHARES}
        kept = {share: [mean for number, mean in enumerate(of) if number != left_out] for share, of in means.items()}
        return max(SHARES, key=lambda share: np.mean(kept[share]))

    print("\nThe best weight of each way, the mean of sets and models, and how far it is from the chosen way")
    for way in WAYS:
        share = best_weight(way)
        there = per_set((way, share))
        gap = apart([one - other for one, other in zip(per_set(CHOSEN), there, strict=True)])
        print(f"{way:31}{share}{np.mean([one.mean() for one in there]):9.2f}   chosen − this {gap}")
    gap = apart([one - other for one, other in zip(per_set(CHOSEN), per_set(BEFORE), strict=True)])
    print(f"{CHOSEN} − {BEFORE}: {gap}")
    print("weight without each set:", ", ".join(f"{name} {best_weight(CHOSEN[0], n)}" for n, name in enumerate(sets)))


def choose_words(sets: dict[str, Found], models: Sequence[str], cache: Path | None) -> None:
    settings: dict[str, dict[str, object]] = {
        f"k1 {K1}, b {B}": {},
        "words as they are": {"stemmer": NONE},
        "k1 0.9, b 0.4": {"k1": 0.9, "b": 0.4},
        "k1 0.6, b 0.75": {"k1": 0.6},
        "k1 1.5, b 0.75": {"k1": 1.5},
        "k1 2.0, b 0.75": {"k1": 2.0},
        "English stop words left out": {"left_out": ENGLISH_STOP_WORDS},
        "words of over 50 % left out": {"share": 0.5},
        "words of over 10 % left out": {"share": 0.1},
    }
    dense = {(model, name): cosines(found, name, model, cache) for model in models for name, found in sets.items()}
    used: dict[str, list[Floats]] = {}  # what the first setting has
    head("BM25", sets)
    for label, setting in settings.items():
        words = {name: weights(found, **setting) for name, found in sets.items()}  # type: ignore[arg-type]
        first = models[0]
        alone = [parts(dense[first, name], words[name], found)["lexical"] for name, found in sets.items()]
        print(line(f"{label}, lexical", [one.mean() for one in alone]) + against(used, "lexical", alone))
        for model in models:
            values = []
            for name, found in sets.items():
                pool = [candidates(*pair, DEPTH) for pair in zip(dense[model, name], words[name], strict=True)]
                values.append(joined(pool, WAYS[CHOSEN[0]][1], CHOSEN[1], found))
            means = [one.mean() for one in values]
            print(line(f"    with {model}", means) + against(used, model, values), flush=True)


def against(used: dict[str, list[Floats]], label: str, values: list[Floats]) -> str:
    """How far the values are from the first ones of the same label."""
    gaps = [one - other for one, other in zip(values, used.setdefault(label, values), strict=True)]
    return "   − the first " + apart(gaps)


def report(sets: dict[str, Found], models: Sequence[str], cache: Path | None) -> None:
    """The function that search and judge call, and reciprocal ranks, which it replaced."""
    for model in models:
        head(f"{model}, reported sets", sets)
        rows: dict[str, list[Floats]] = {}
        for name, found in sets.items():
            dense, lexical = cosines(found, name, model, cache), weights(found)
            pool = [candidates(*pair, DEPTH) for pair in zip(dense, lexical, strict=True)]
            alone = parts(dense, lexical, found)
            used = (used_order(*pair) for pair in zip(pool, dense, lexical, strict=True))
            values = {
                **alone,
                "reciprocal ranks, k 60": joined(pool, WAYS[BEFORE[0]][1], BEFORE[1], found),
                "hybrid": quality(used, found),
            }
            for label, one in values.items():
                rows.setdefault(label, []).append(one)
        for label, some in rows.items():
            print(line(label, [one.mean() for one in some]))
        for label in ("dense", "lexical", "reciprocal ranks, k 60"):
            gaps = [apart([one - other]) for one, other in zip(rows["hybrid"], rows[label], strict=True)]
            print(f"hybrid − {label:26}" + "   ".join(gaps), flush=True)


def used_order(pool: Candidates, dense: Floats, lexical: Floats) -> list[int]:
    rankings = []
    for side, scores in enumerate((dense, lexical)):
        rows = pool.rows[pool.named(side)]
        ranks = pool.ranks[side][pool.named(side)]
        rankings.append([(int(row), float(scores[row])) for row in rows[np.argsort(ranks)]])
    return [one.row for one in fuse(*rankings, lambda rows: dense[rows], lambda rows: lexical[rows])]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path, help="the folder of evaluation data")
    options.add_argument("--models", default="builtin,builtin-static")
    options.add_argument("--cache", type=Path, help="a folder that keeps vectors between calls")
    options.add_argument("--words", action="store_true", help="settings of BM25 instead of ways to join")
    options.add_argument("--reported", action="store_true", help="the chosen way on the reported sets")
    chosen = options.parse_args()
    models = chosen.models.split(",")
    if chosen.reported:
        report(reported(chosen.data), models, chosen.cache)
        sys.exit()
    sets = development(chosen.data)
    for name, found in sets.items():
        print(f"{name}: {len(found.queries):,} queries, {len(found.documents):,} documents")
    (choose_words if chosen.words else choose)(sets, models, chosen.cache)


if __name__ == "__main__":
    main()
