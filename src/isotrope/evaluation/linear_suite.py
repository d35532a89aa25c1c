"""Linear evaluation and k-NN on labelled text of one's own: what do the frozen vectors know of the classes?

    linear    logistic regression on the vectors, C chosen on the dev part or on a tenth of the training part
    k-NN      cosine, the k nearest training texts vote with weight exp(cos / τ)

Top-1, top-5 and the calibration error of the predicted probabilities. The second stage of SimCLR, MoCo and SupCon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from isotrope.data.image_sources import is_image_source
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.classifier_scores import BINS, ClassifierScore, score_classifier
from isotrope.evaluation.frozen_classifier import STRENGTHS, part_vectors, predict
from isotrope.evaluation.image_parts import check_image_parts, few_labels, read_image_parts, titles
from isotrope.evaluation.items import Items
from isotrope.evaluation.labelled_parts import Parts, read_parts
from isotrope.evaluation.linear import LabelledSource, numbered
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.neighbour_votes import NEIGHBOURS, TEMPERATURE, neighbour_votes

PROTOCOL = "linear-v1"
TITLES = {"standardised": "linear, standardised", "as_they_are": "linear, as they are", "knn": "k-NN"}
VERDICT = "standardised"  # two encoders are compared by it alone: the three classifiers share their test texts
COLUMNS = ("classifier", "top-1", "95 % interval", "top-5", "95 % interval", "calibration", "95 % interval")


class Linear(Suite):
    """How many classes of your labelled text does a linear classifier, or a vote of neighbours, find in the vectors?

    For text of one's own. ``transfer`` asks the same of seven public tasks; fine-tuning trains the encoder and finds
    more. Read every accuracy against the commonest class, and not at all where many test texts are training texts.
    """

    card = SuiteCard(
        name="linear",
        title="Linear classifier and k-NN on frozen vectors, on labelled text of your own",
        protocol=PROTOCOL,
        takes=("texts", "test", "columns", "seeds", "resamples"),
    )
    row_titles = TITLES

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        if options.texts is None:
            raise InputError("The linear suite needs labelled text: give texts.", setting="texts")
        if is_image_source(options.texts):
            check_image_parts(options.texts, options.test)
        else:
            _check_labels(read_parts(_labelled(options), options.test, options.columns, options.seed))

    def run(self, encoder: Encoder, options: Options) -> Results:
        drawn = options.seed, options.resamples
        return evaluate_linear(encoder, _labelled(options), options.test, options.columns, *drawn)

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["linear"]
        return {"linear_top_1": found["standardised"]["top_1"], "knn_top_1": found["knn"]["top_1"]}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        if is_image_source(options.texts):
            return {}
        parts = read_parts(_labelled(options), options.test, options.columns, options.seed)
        return dict.fromkeys(TITLES, parts.test.texts[0])


def evaluate_linear(
    encoder: Encoder,
    texts: LabelledSource,
    test: LabelledSource | None = None,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = 500,
    neighbours: int = NEIGHBOURS,
    temperature: float = TEMPERATURE,
) -> Results:
    """Two linear classifiers, with and without standardising, and k-NN; every text is encoded once.

    Images have further rows: the linear classifier with 1 % and 10 % of the labels. ``seed`` draws the parts that the
    text does not name itself, and the bootstrap.
    """
    if neighbours < 1 or not temperature > 0:
        raise InputError(f"neighbours and temperature must be above 0; {neighbours} and {temperature} were given.")
    images = is_image_source(texts)
    if images:
        parts, vectors = read_image_parts(encoder, texts, cast(str, test), seed)
    else:
        parts = read_parts(texts, test, columns, seed)
        every = [part for part in (parts.train, parts.test, parts.dev) if part is not None]
        vectors = TextVectors.encoded(encoder, (text for part in every for text in part.texts[0]))
    sides = _check_labels(parts)
    fewer = few_labels(parts, seed) if images else {}
    labels, wanted = (torch.from_numpy(side).to(encoder.device) for side in sides[:2])
    classes = int(labels.max()) + 1
    found, items = {}, {}
    for name in STRENGTHS:
        predicted = predict(name, parts, vectors, encoder.device, seed)
        if name == VERDICT:
            items[name] = Items((predicted.probabilities.argmax(dim=1) == wanted).double().cpu().numpy())
        found[name] = score_classifier(predicted.probabilities, wanted, seed, resamples, predicted.strength)
    for name, some in fewer.items():
        predicted = predict("standardised", some, vectors, encoder.device, seed)
        found[name] = score_classifier(predicted.probabilities, wanted, seed, resamples, predicted.strength)
    judged, known = (part_vectors(vectors, part, encoder.device) for part in (parts.test, parts.train))
    votes = neighbour_votes(judged, known, labels, classes, neighbours, temperature)
    found["knn"] = score_classifier(votes, wanted, seed, resamples)
    what = "images" if images else "texts"
    protocol = {
        "protocol": PROTOCOL,
        "parts": f"{len(labels):,} to learn from, {len(wanted):,} to judge by: {parts.made}",
        "in both": f"{parts.shared:,} {what}",
        "linear": "logistic regression, C chosen on " + ("dev" if parts.dev else "a tenth of the training part"),
        "k-NN": f"cosine, k {min(neighbours, len(labels))}, weights exp(cos / {temperature:g})",
        "calibration": f"expected calibration error, {BINS} bins of equal width",
        "interval": f"95 %, binomial; of calibration a bootstrap of {what}, {resamples} resamples, seed {seed}",
        **read_out(encoder),
    }
    majority = 100 * float((wanted == labels.bincount().argmax()).double().mean())
    facts = {"majority": majority, "classes": classes, "train": len(labels), "test": len(wanted)}
    named = {**TITLES, **titles([*fewer])}
    rows = [_row(named[name], score, classes > 5) for name, score in found.items()]
    rows.append(("commonest class", f"{majority:.2f}", "", "", "", "", ""))
    nested = {name: score.to_dict() for name, score in found.items()}
    return Results({"linear": {**nested, **facts}}, protocol, COLUMNS, rows, items=items)


def _labelled(options: Options) -> LabelledSource:
    return cast(LabelledSource, options.texts)  # from Python also a list of (text, label)


def _check_labels(parts: Parts) -> list[npt.NDArray[np.int64]]:
    """The classes as numbers: train, test, dev. Refuses one class alone, and classes that nothing is learned of."""
    dev = [] if parts.dev is None else [parts.dev.labels]
    return numbered(parts.train.labels, parts.test.labels, *dev)


def _row(title: str, score: ClassifierScore, many: bool) -> tuple[str, ...]:
    """Among the first five of five classes everything is found: then top-5 says nothing."""
    top_5 = (f"{score.top_5:.2f}", str(score.top_5_interval)) if many else ("", "")
    error = f"{score.calibration_error:.2f}", str(score.calibration_error_interval)
    return (title, f"{score.top_1:.2f}", str(score.top_1_interval), *top_5, *error)
