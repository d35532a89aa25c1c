"""Small changes that keep or turn the meaning: synonym against antonym, and counterfactual pairs of natural language
inference.

Triples. One word of a sentence is replaced by a synonym, and by an antonym. Hit: the sentence with the synonym is the
nearer one, by cosine; by dot product it is counted beside it. The words come from WordNet, the most frequent sense
alone, in the inflection of the word they stand for.

Counterfactual pairs (Kaushik et al. 2020). Two items that share a premise or a hypothesis, the other side edited so
that the label turned. A logistic regression on [u, v, |u − v|, u·v] of frozen vectors learns the labels; its strength
is chosen on the dev part.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.data.sources import find_records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.folds import by_dev
from isotrope.evaluation.linear import numbered, read_labelled, standardised
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.sts import data_folder
from isotrope.lexicon.english import WORD
from isotrope.lexicon.replacements import open_lexicon
from isotrope.lexicon.wordnet import wordnet_folder

PROTOCOL = "counterfactual-v1"
STRENGTHS = (0.0001, 0.001, 0.01)  # inverse of the penalty
TITLES = {
    "synonym_nearer": "synonym nearer than antonym",
    "synonym_nearer_dot": "the same by dot product",
    "accuracy": "label of an item",
    "both_right": "labels of both items of a pair",
    "entailed_nearer": "entailed nearer than contradicted",
}
Triples = list[tuple[str, str, str]]
Items = tuple[list[str], list[str], list[str]]  # premises, hypotheses, labels
Texts = str | os.PathLike[str] | Sequence[str]


def evaluate_counterfactual(
    encoder: Encoder, texts: Texts | None = None, data_dir: str | os.PathLike[str] | None = None, seed: int = 0,
    columns: Sequence[str] | None = None,
) -> Results:  # fmt: skip
    """Both measures.

    ``texts`` are the sentences that triples are made of; without them, those of the movie reviews (MR), as in CLINE.
    """
    folder = data_folder(data_dir)
    source = folder / "transfer" / "mr.tsv.gz" if texts is None else texts
    triples = make_triples(_sentences(source, columns), seed)
    parts = {part: read_items(folder / "nli" / f"cad_snli.{part}.tsv.gz") for part in ("train", "dev", "test")}
    hits = hit_rates(encoder, triples)
    found = counterfactual_accuracy(encoder, parts["train"], parts["dev"], parts["test"])
    tested = {
        **{name: (share, len(triples)) for name, share in hits.items()},
        **{name: found[name] for name in found if name != "strength"},
    }
    rows = [
        (TITLES[name], f"{100 * share:.2f}", "{:.1f} – {:.1f}".format(*interval(share, count)), f"{count:,}")
        for name, (share, count) in tested.items()
    ]
    protocol = {
        "protocol": PROTOCOL,
        "triples": "MR" if texts is None else "the given text",
        "classifier": f"logistic regression, standardised, C = {found['strength']:g} chosen on dev",
        "interval": "95 %, normal",
        **read_out(encoder),
        "seed": seed,
    }
    scores = {name: {"share": 100 * share, "count": count} for name, (share, count) in tested.items()}
    return Results({"counterfactual": scores}, protocol, ("measure", "%", "95 % interval", "tested"), rows)


def make_triples(texts: Sequence[str], seed: int = 0) -> Triples:
    """(sentence, with a synonym, with an antonym) of each sentence that has a word with both; which word and which
    others, by chance.
    """
    table = open_lexicon(wordnet_folder(), 1)
    rng = np.random.default_rng(seed)
    triples: Triples = []
    for text in texts:
        found = list(WORD.finditer(text.lower()))
        numbers = np.array([table.number.get(match[0], len(table.words)) for match in found], dtype=np.int64)
        slots = table.slots(numbers, np.zeros_like(numbers)) if len(numbers) else numbers
        real = np.maximum(slots, 0)
        there = (slots >= 0) & (table.choices["synonyms"].count(real) > 0) & (table.choices["antonyms"].count(real) > 0)
        if there.any():
            place = int(rng.choice(np.flatnonzero(there)))
            slot, dice = slots[place : place + 1], rng.random((2, 1))
            synonym, antonym = (
                int(table.choices[kind].pick(slot, die)[0])
                for kind, die in zip(("synonyms", "antonyms"), dice, strict=True)
            )
            span = found[place].span()
            triples.append(
                (text, _replaced(text, span, table.words[synonym]), _replaced(text, span, table.words[antonym]))
            )
    if not triples:
        raise InputError(
            "No sentence with a word that has both a synonym and an antonym was found; the text must be English."
        )
    return triples


def hit_rates(encoder: Encoder, triples: Triples) -> dict[str, float]:
    """Share of the triples in which the sentence with the synonym is nearer, by cosine and by dot product; a tie is no
    hit.

    CLINE trains dot products, and can do that by the length of vectors alone, which a cosine does not see.
    """
    plain = [encoder.encode([triple[side] for triple in triples]).astype(np.float64) for side in range(3)]
    hits = {}
    for name, (original, synonym, antonym) in (("synonym_nearer", map(_unit, plain)), ("synonym_nearer_dot", plain)):
        hits[name] = float(((original * synonym).sum(1) > (original * antonym).sum(1)).mean())
    return hits


def counterfactual_accuracy(encoder: Encoder, train: Items, dev: Items, test: Items) -> dict[str, Any]:
    """Accuracy of the classifier, how often it is right on both of a pair, and how often the entailed side of a pair is
    the nearer one.
    """
    texts = sorted({text for items in (train, dev, test) for side in items[:2] for text in side})
    vectors, index = encoder.encode(texts), {text: number for number, text in enumerate(texts)}
    sides = [[vectors[[index[text] for text in side]] for side in items[:2]] for items in (train, dev, test)]
    features = torch.from_numpy(
        np.concatenate([np.concatenate([u, v, np.abs(u - v), u * v], axis=1) for u, v in sides])
    )
    parts = standardised(features.to(encoder.device), len(train[2])).split(
        [len(items[2]) for items in (train, dev, test)]
    )
    labels = [torch.from_numpy(side).to(encoder.device) for side in numbered(train[2], dev[2], test[2])]
    judged = by_dev(parts[0], labels[0], parts[1], labels[1], parts[2], labels[2], STRENGTHS)
    right = (judged.found == judged.wanted).cpu().numpy()
    pairs = counterfactual_pairs(test)
    apart = [(a, b) for a, b in pairs if {test[2][a], test[2][b]} == {"entailment", "contradiction"}]
    told = [(a, b) if test[2][a] == "entailment" else (b, a) for a, b in apart]
    cosine = (_unit(sides[2][0]) * _unit(sides[2][1])).sum(1)
    return {
        "accuracy": (float(right.mean()), len(right)),
        "both_right": (float(np.mean([right[a] and right[b] for a, b in pairs])), len(pairs)),
        "entailed_nearer": (float(np.mean([cosine[a] > cosine[b] for a, b in told])), len(told)),
        "strength": judged.strengths[0],
    }


def counterfactual_pairs(items: Items) -> list[tuple[int, int]]:
    """Items that share one side and differ in the other and in the label."""
    premises, hypotheses, labels = items
    pairs = set()
    for side in (premises, hypotheses):
        groups: dict[str, list[int]] = {}
        for number, text in enumerate(side):
            groups.setdefault(text, []).append(number)
        pairs |= {pair for group in groups.values() for pair in combinations(group, 2)}
    return sorted((a, b) for a, b in pairs if labels[a] != labels[b])


def read_items(path: str | os.PathLike[str]) -> Items:
    (premises, hypotheses), labels = read_labelled(path, kind="labelled-pairs")
    return premises, hypotheses, labels


def interval(share: float, count: int) -> tuple[float, float]:
    """In per cent."""
    half = 1.96 * np.sqrt(share * (1 - share) / count)
    return 100 * max(share - half, 0.0), 100 * min(share + half, 1.0)


def _sentences(texts: Texts, columns: Sequence[str] | None) -> list[str]:
    _, _, records, _ = find_records(texts, ("sentences",), columns, split=False)
    return list(dict.fromkeys(record.texts[0] for record in records if record.texts[0]))


def _replaced(text: str, span: tuple[int, int], other: str) -> str:
    word = text[slice(*span)]
    return text[: span[0]] + (other.capitalize() if word.istitle() else other) + text[span[1] :]


def _unit(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
