"""Pairs of the corpora with scores made here: neighbours of one encoder, read again by a cross-encoder.

    label_pairs.py nli WORK DATA           NLI pairs with open terms, without any protected sentence → WORK/nli.tsv
    label_pairs.py candidates WORK MODEL   neighbours among sentences of WORK/text → WORK/candidates.tsv
    label_pairs.py label WORK CROSS        → WORK/sources/labelled.tsv, for `cosent`
    label_pairs.py agree WORK CROSS MODEL  what the cross-encoder adds to the cosine, on pairs for choosing

    score = z(cosine) + ½ z(e),   e = mean over both orders of log p / (1 − p),   p: probability of entailment

A cross-encoder reads both texts of a pair at once, so it sees what two vectors cannot. It is too slow to search with,
so the encoder finds the pairs. CROSS is what `isotrope train fine-tune WORK/nli.tsv` wrote. Everything is drawn with
fixed seeds. ``agree`` reads WORK/dev.tsv and WORK/held/pairs, nothing that is reported.
"""

from __future__ import annotations

import lzma
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from choice import cosines
from sklearn.metrics import roc_auc_score
from texts import PAIR_FILES, fields

import isotrope
from isotrope.data.leaks import protect
from isotrope.data.readers import column
from isotrope.evaluation.benchmark_files import protected_files
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.files import written_file
from isotrope.measures.correlation import spearman
from isotrope.training.half_precision import bfloat16_works

SAMPLED = {  # sentences of each corpus: news and forums most, as no other source has them
    "wikinews_docs": 110_000,
    "forum_docs": 35_000,
    "wiki2_docs": 25_000,
    "transcripts_docs": 10_000,
    "techdocs_docs": 10_000,
}
ANCHORS, NEAR = 45_000, 48_000  # sentences whose neighbours are taken, and pairs kept of those
CAPTIONS, CAPTION_ANCHORS = 20_000, 9_000
FAR_BLOCKS = 8  # of a thousand pairs each
BLOCK = 1_000
LONGEST = 52  # words of both texts
COPY, ALIKE = 0.985, 0.85  # a higher cosine, or a larger share of common words, is a copy
CROSS_WEIGHT = 0.5
AT_ONCE = 4_000  # pairs
CHOOSING = 2_500  # pairs of each set
Pair = tuple[str, str, float]
Floats = npt.NDArray[np.float64]


def nli(work: Path, data: Path) -> None:
    protected, found = protect(protected_files(data)), []
    for name in PAIR_FILES:
        rows = fields(data / "nli" / f"{name}.tsv.gz", "label", "premise", "hypothesis")
        for label, premise, hypothesis in rows:
            if not any(map(protected.found_in, (premise, hypothesis))):
                found.append(("neutral" if label == "not_entailment" else label, premise, hypothesis))
    random.Random(0).shuffle(found)
    write(work / "nli.tsv", ("label", "sentence1", "sentence2"), found)


def candidates(work: Path, model: str) -> None:
    encoder = isotrope.load(model)
    texts = sampled(work, random.Random(0))
    vectors = units(encoder, texts)
    near = near_pairs(texts, vectors, random.Random(1))
    rng = random.Random(2)
    pairs = [*caption_pairs(work, encoder, rng), *far_pairs(texts, vectors, rng), *near]
    rng.shuffle(pairs)
    rows = [(first, second, f"{cosine:.4f}") for first, second, cosine in pairs if words(first, second) <= LONGEST]
    write(work / "candidates.tsv", ("sentence1", "sentence2", "cosine"), rows)


def sampled(work: Path, rng: random.Random) -> list[str]:
    chosen: list[str] = []
    seen: set[str] = set()
    for name, count in SAMPLED.items():
        texts = []
        for text in lines(work / "text" / f"{name}.txt.xz"):
            if 5 <= len(text.split()) <= 35 and text.lower() not in seen:
                seen.add(text.lower())
                texts.append(text)
        rng.shuffle(texts)
        chosen += texts[:count]
    return chosen


def near_pairs(texts: Sequence[str], vectors: torch.Tensor, rng: random.Random) -> list[Pair]:
    """The first two neighbours of an anchor, and one of the ten behind them."""
    found: dict[tuple[int, int], float] = {}
    bags = [bag(text) for text in texts]
    anchors = rng.sample(range(len(texts)), ANCHORS)
    for start in range(0, ANCHORS, BLOCK):
        rows = anchors[start : start + BLOCK]
        for row, (cosine, nearest) in zip(rows, neighbours(vectors, rows, 12), strict=True):
            fit = [pair for pair in zip(cosine, nearest, strict=True) if not copies(*pair, bags[row], bags)]
            if len(fit) >= 4:
                for value, other in (fit[0], fit[1], rng.choice(fit[2:])):
                    found.setdefault((min(row, other), max(row, other)), value)
    pairs = [(texts[first], texts[second], value) for (first, second), value in found.items()]
    rng.shuffle(pairs)
    return [pair for pair in pairs if words(*pair[:2]) <= LONGEST][:NEAR]


def far_pairs(texts: Sequence[str], vectors: torch.Tensor, rng: random.Random) -> list[Pair]:
    """A neighbour between the 30th and the 3,000th: without such pairs there is no lower end of the scale."""
    pairs = []
    for _ in range(FAR_BLOCKS):
        rows = rng.sample(range(len(texts)), BLOCK)
        for row, (cosine, nearest) in zip(rows, neighbours(vectors, rows, 3_000), strict=True):
            place = rng.randrange(30, 3_000)
            pairs.append((texts[row], texts[nearest[place]], cosine[place]))
    return pairs


def caption_pairs(work: Path, encoder: isotrope.Encoder, rng: random.Random) -> list[Pair]:
    texts = [text for text in dict.fromkeys(lines(work / "text" / "captions.txt.xz")) if 4 <= len(text.split()) <= 30]
    rng.shuffle(texts)
    del texts[CAPTIONS:]
    vectors, bags, pairs = units(encoder, texts), [bag(text) for text in texts], []
    for start in range(0, CAPTION_ANCHORS, BLOCK):
        rows = list(range(start, start + BLOCK))
        for row, (cosine, nearest) in zip(rows, neighbours(vectors, rows, 200), strict=True):
            fit = [pair for pair in zip(cosine, nearest, strict=True) if not copies(*pair, bags[row], bags)]
            taken = [fit[0], rng.choice(fit[1:10]), *([rng.choice(fit[30:])] if row % 3 == 0 else [])]
            pairs += [(texts[row], texts[other], value) for value, other in taken]
    return pairs


def label(work: Path, cross: str) -> None:
    first, second, cosine = (column(work / "candidates.tsv", name) for name in ("sentence1", "sentence2", "cosine"))
    scores = standard(np.array([float(one) for one in cosine])) + CROSS_WEIGHT * standard(
        entailed(cross, first, second)
    )
    scores = 5 * (scores - scores.min()) / np.ptp(scores)
    rows = zip(first, second, (f"{score:.4f}" for score in scores), strict=True)
    write(work / "sources" / "labelled.tsv", ("sentence1", "sentence2", "score"), list(rows))


def agree(work: Path, cross: str, model: str) -> None:
    """Spearman × 100 on the development pairs, 100 × the area under the curve on the others."""
    encoder, pairs = isotrope.load(model), read_pairs(work / "dev.tsv")
    compare("dev", encoder, cross, (pairs.first, pairs.second), lambda found: spearman(found, pairs.gold[:CHOOSING]))
    for file in sorted((work / "held" / "pairs").glob("*.tsv")):
        gold = [int(one) for one in column(file, "label")][:CHOOSING]
        sides = (column(file, "sentence1"), column(file, "sentence2"))
        compare(file.stem, encoder, cross, sides, lambda found, gold=gold: roc_auc_score(gold, found))


def compare(
    name: str, encoder: isotrope.Encoder, cross: str, sides: Sequence[Sequence[str]], measure: Callable[[Floats], float]
) -> None:
    first, second = (list(side)[:CHOOSING] for side in sides)
    alone, read = cosines(encoder, first, second).astype(np.float64), entailed(cross, first, second)
    found = {"cosine": alone, "cross": read, "both": standard(alone) + CROSS_WEIGHT * standard(read)}
    print(name, *(f"{kind} {100 * measure(one):.2f}" for kind, one in found.items()), flush=True)


def entailed(cross: str, first: Sequence[str], second: Sequence[str]) -> Floats:
    """The mean log-odds of entailment over both orders; bfloat16 where the processor has it is fast enough."""
    encoder = isotrope.load(cross)
    place, odds = list(encoder.classifier.classes_).index("entailment"), []
    device, half = encoder.device.type, bfloat16_works()
    for start in range(0, len(first), AT_ONCE):
        sides = first[start : start + AT_ONCE], second[start : start + AT_ONCE]
        with torch.autocast(device, torch.bfloat16, enabled=half):
            orders = [encoder.predict_proba(list(zip(*order, strict=True)))[:, place] for order in (sides, sides[::-1])]
        clipped = np.clip(orders, 1e-3, 1 - 1e-3)
        odds.append(np.log(clipped / (1 - clipped)).mean(axis=0))
        print(f"{min(start + AT_ONCE, len(first)):,} of {len(first):,} pairs", file=sys.stderr)
    return np.concatenate(odds)


def neighbours(vectors: torch.Tensor, rows: list[int], count: int) -> Iterator[tuple[list[float], list[int]]]:
    scores = vectors[rows] @ vectors.T
    scores[range(len(rows)), rows] = -1.0
    best = scores.topk(count, dim=1)
    yield from zip(best.values.tolist(), best.indices.tolist(), strict=True)


def copies(cosine: float, other: int, own: frozenset[str], bags: Sequence[frozenset[str]]) -> bool:
    return cosine >= COPY or len(own & bags[other]) / max(1, len(own | bags[other])) >= ALIKE


def units(encoder: isotrope.Encoder, texts: list[str]) -> torch.Tensor:
    return torch.from_numpy(np.asarray(encoder.encode(texts, normalize_embeddings=True)))


def standard(values: Floats) -> Floats:
    return (values - values.mean()) / values.std()


def bag(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def words(*texts: str) -> int:
    return sum(len(text.split()) for text in texts)


def lines(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from (line.strip() for line in file if line.strip())


def write(path: Path, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_file(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in map("\t".join, [head, *rows])), encoding="utf-8")
    print(f"{path}: {len(rows):,} rows")


if __name__ == "__main__":
    verb, work, *rest = sys.argv[1:]
    if verb == "nli":
        nli(Path(work), Path(*rest))
    else:
        {"candidates": candidates, "label": label, "agree": agree}[verb](Path(work), *rest)
