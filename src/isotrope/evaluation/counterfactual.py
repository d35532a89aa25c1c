"""Small changes that keep or turn the meaning: synonym against antonym, and counterfactual pairs of natural language
inference.

Triples (``antonym_triples``). One word of a sentence is replaced by a synonym, and by an antonym. Hit: the sentence
with the synonym is the nearer one, by cosine; by dot product in a row of its own.

Counterfactual pairs (Kaushik et al. 2020). Two items that share a premise or a hypothesis, the other side edited so
that the label turned. A logistic regression on [u, v, |u − v|, u·v] of frozen vectors learns the labels; its strength
is chosen on the dev part.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.data.sentence_files import read_sentence_file
from isotrope.data.tables import check_file
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.antonym_triples import hit_rates, make_triples
from isotrope.evaluation.benchmark_files import data_folder
from isotrope.evaluation.folds import by_dev
from isotrope.evaluation.linear import numbered, read_labelled, standardised
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.lexicon.wordnet import files_of, wordnet_folder
from isotrope.measures.intervals import Interval, grouped_interval, normal_interval
from isotrope.measures.unit_vectors import unit_rows

PROTOCOL = "counterfactual-v1"
STRENGTHS = (0.0001, 0.001, 0.01)  # inverse of the penalty
TITLES = {
    "synonym_nearer": "synonym nearer than antonym",
    "synonym_nearer_dot": "the same by dot product",
    "accuracy": "label of an item",
    "both_right": "labels of both items of a pair",
    "entailed_nearer": "entailed nearer than contradicted",
}
COLUMNS = ("measure", "%", "95 % interval", "tested")


class Items(NamedTuple):
    premises: list[str]
    hypotheses: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Share:
    """``share`` of ``count`` items, pairs or triples, between 0 and 1, and its 95 % interval."""

    share: float
    count: int
    interval: Interval = field(compare=False)

    @classmethod
    def of(cls, hits: npt.NDArray[np.bool_], groups: npt.NDArray[np.int64]) -> Share:
        """Hits that vary together within a group."""
        return cls(float(hits.mean()), len(hits), grouped_interval(hits, groups))

    def to_dict(self) -> dict[str, float]:
        return {"share": 100 * self.share, "count": self.count}


@dataclass(frozen=True)
class CounterfactualAccuracy:
    accuracy: Share
    both_right: Share
    entailed_nearer: Share
    strength: float


class Counterfactual(Suite):
    """Does the encoder see a small change of meaning? One word, or one edit that turns a label.

    Made for methods that train on such changes (cline). Its triples need WordNet and English text.
    """

    card = SuiteCard(
        name="counterfactual",
        title="Synonym against antonym, and counterfactual inference pairs",
        protocol=PROTOCOL,
        takes=("data_dir", "texts", "columns", "seeds"),
        has_items=False,
    )
    row_titles = TITLES

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        for file in item_files(data_folder(options.data_dir)).values():
            check_file(file)
        files_of(wordnet_folder())

    def run(self, encoder: Encoder, options: Options) -> Results:
        """Both measures. Triples are made of ``options.texts``, or of the movie reviews (MR), as in CLINE."""
        texts, seed = options.texts, options.seed
        folder = data_folder(options.data_dir)
        source = folder / "transfer" / "mr.tsv.gz" if texts is None else texts
        triples = make_triples(list(dict.fromkeys(read_sentence_file(source, options.columns).texts)), seed)
        train, dev, test = (read_items(file) for file in item_files(folder).values())
        hits = hit_rates(encoder, triples)
        found = counterfactual_accuracy(encoder, train, dev, test)
        shares = {
            "synonym_nearer": _of_triples(hits.by_cosine, len(triples)),
            "synonym_nearer_dot": _of_triples(hits.by_dot_product, len(triples)),
            "accuracy": found.accuracy,
            "both_right": found.both_right,
            "entailed_nearer": found.entailed_nearer,
        }
        protocol = {
            "protocol": PROTOCOL,
            "triples": "MR" if texts is None else "the given text",
            "classifier": f"logistic regression, standardised, C = {found.strength:g} chosen on dev",
            "interval": "95 %, normal; edits of one original vary together",
            **read_out(encoder),
            "seed": seed,
        }
        scores = {name: share.to_dict() for name, share in shares.items()}
        return Results(
            {"counterfactual": scores}, protocol, COLUMNS, [_row(name, each) for name, each in shares.items()]
        )

    def summary(self, results: Results) -> dict[str, float]:
        return {name: found["share"] for name, found in results.scores["counterfactual"].items()}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        test = read_items(item_files(data_folder(options.data_dir))["test"])
        return {task: [*test.premises, *test.hypotheses] for task in ("accuracy", "both_right", "entailed_nearer")}


def counterfactual_accuracy(encoder: Encoder, train: Items, dev: Items, test: Items) -> CounterfactualAccuracy:
    """Accuracy of the classifier, how often it is right on both of a pair, and how often the entailed side of a pair is
    the nearer one.
    """
    parts = (train, dev, test)
    vectors = TextVectors.encoded(encoder, (text for part in parts for side in part[:2] for text in side))
    features = torch.cat([features_of(vectors, part) for part in parts]).to(encoder.device)
    learn, choose, judge = standardised(features, len(train.labels)).split([len(part.labels) for part in parts])
    labels = [torch.from_numpy(side).to(encoder.device) for side in numbered(*(part.labels for part in parts))]
    judged = by_dev(learn, labels[0], choose, labels[1], judge, labels[2], STRENGTHS)
    right = (judged.found == judged.wanted).cpu().numpy()
    pairs = counterfactual_pairs(test)
    ordered = [_entailed_first(test, pair) for pair in pairs if _opposed(test, pair)]
    if not ordered:
        raise InputError(
            "The test part has no pair of items that share a side, one an entailment and one a contradiction; are they "
            "the counterfactual pairs?"
        )
    first, second = (unit_rows(vectors.of(side).astype(np.float64)) for side in test[:2])
    cosine = (first * second).sum(1)
    groups, (one, other), (nearer, farther) = edits_of_one(test), np.transpose(pairs), np.transpose(ordered)
    return CounterfactualAccuracy(
        Share.of(right, groups),
        Share.of(right[one] & right[other], groups[one]),
        Share.of(cosine[nearer] > cosine[farther], groups[nearer]),
        judged.strengths[0],
    )


def features_of(vectors: TextVectors, items: Items) -> Tensor:
    """[rows, 4 d]: u, v, |u − v|, u·v."""
    u, v = (vectors.of(side) for side in (items.premises, items.hypotheses))
    return torch.from_numpy(np.concatenate([u, v, np.abs(u - v), u * v], axis=1))


def counterfactual_pairs(items: Items) -> list[tuple[int, int]]:
    """Items that share one side and differ in the other and in the label."""
    pairs = set()
    for side in (items.premises, items.hypotheses):
        groups: dict[str, list[int]] = {}
        for number, text in enumerate(side):
            groups.setdefault(text, []).append(number)
        pairs |= {pair for group in groups.values() for pair in combinations(group, 2)}
    return sorted((a, b) for a, b in pairs if items.labels[a] != items.labels[b])


def edits_of_one(items: Items) -> npt.NDArray[np.int64]:
    """[items]: a number for each original; items that share a premise or a hypothesis, or both with a third, have the
    same."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    premises, hypotheses = (np.unique(side, return_inverse=True)[1] for side in items[:2])
    size = len(premises) + len(hypotheses)  # texts of both sides as nodes, items as edges
    graph = coo_array((np.ones(len(premises)), (premises, hypotheses + len(premises))), shape=(size, size))
    found: npt.NDArray[np.int64] = connected_components(graph, directed=False)[1][premises]
    return found


def item_files(folder: Path) -> dict[str, Path]:
    return {part: folder / "nli" / f"cad_snli.{part}.tsv.gz" for part in ("train", "dev", "test")}


def read_items(path: str | os.PathLike[str]) -> Items:
    (premises, hypotheses), labels = read_labelled(path, record_type="labelled-pairs")
    return Items(premises, hypotheses, labels)


def _opposed(items: Items, pair: tuple[int, int]) -> bool:
    return {items.labels[number] for number in pair} == {"entailment", "contradiction"}


def _entailed_first(items: Items, pair: tuple[int, int]) -> tuple[int, int]:
    a, b = pair
    return (a, b) if items.labels[a] == "entailment" else (b, a)


def _of_triples(share: float, count: int) -> Share:
    return Share(share, count, normal_interval(share, count))


def _row(name: str, found: Share) -> tuple[str, ...]:
    return TITLES[name], f"{100 * found.share:.2f}", str(found.interval.times(100)), f"{found.count:,}"
