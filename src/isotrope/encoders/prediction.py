"""Texts → classes, by the classifier that a model keeps. A pair of texts is read together, as fine-tuning reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.classifier import Classifier
from isotrope.encoders.cut_texts import note_cut
from isotrope.encoders.modes import evaluating
from isotrope.errors import InputError
from isotrope.views.segments import trim_pair

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

PAIRS_AT_ONCE = 64


def classifier_of(encoder: Encoder) -> Classifier:
    """The model's classifier; a model without one is refused."""
    if encoder.classifier is None:
        raise InputError(
            "This model keeps no classifier, so it cannot predict; learn one with `isotrope train head LABELS --model "
            "MODEL`, or train fine-tune, supcon or deepmoji."
        )
    return encoder.classifier


def predict(encoder: Encoder, texts: Any, **options: Any) -> Any:
    """Classes, tuples of labels, or scores."""
    classifier = classifier_of(encoder)
    rows, single = _rows(classifier, texts)
    found = classifier.predict(vectors_of(encoder, rows, **options))
    if classifier.task == "labels":
        named = [tuple(str(name) for name in classifier.classes_[row == 1]) for row in found]
        return named[0] if single else named
    return found[0].item() if single else found


def predict_proba(encoder: Encoder, texts: Any, **options: Any) -> npt.NDArray[np.float64]:
    classifier = classifier_of(encoder)
    rows, single = _rows(classifier, texts)
    found = classifier.predict_proba(vectors_of(encoder, rows, **options))
    return found[0] if single else found


def _rows(classifier: Classifier, texts: Any) -> tuple[list[Any], bool]:
    """The rows to read, and whether one was given alone."""
    if classifier.inputs == 1:
        return ([texts], True) if isinstance(texts, str) else (list(texts), False)
    single = isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(text, str) for text in texts)
    pairs = [texts] if single else list(texts)
    for number, pair in enumerate(pairs):
        words = isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        if not words:
            raise InputError(f"This model classifies pairs of texts; item {number} is {type(pair).__name__}, no pair.")
    return pairs, single


def vectors_of(encoder: Encoder, rows: Sequence[Any], **options: Any) -> npt.NDArray[np.float32]:
    """The vectors that the classifier reads: of texts as ``encode`` gives them, or of pairs."""
    if not rows:
        return np.empty((0, encoder.dimension), dtype=np.float32)
    if classifier_of(encoder).inputs == 1:
        return np.asarray(encoder.encode(list(rows), **options))
    return pair_vectors(encoder, rows)


def pair_vectors(encoder: Encoder, pairs: Sequence[Sequence[str]]) -> npt.NDArray[np.float32]:
    """[pairs, d]: [CLS] A [SEP] B [SEP], cut at the back of the longer text."""
    tokenizer = encoder.text_tokenizer
    room = encoder.max_length - sum(map(len, tokenizer.pair_frame))
    sides = [_ids(encoder, [pair[place] for pair in pairs]) for place in (0, 1)]
    lengths = np.array([len(first) + len(second) for first, second in zip(*sides, strict=True)])
    note_cut(len(pairs), int((lengths > room).sum()), encoder.max_length)
    vectors = np.empty((len(pairs), encoder.dimension), dtype=np.float32)
    order = np.argsort(lengths, kind="stable")
    with evaluating(encoder):
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            group = order[start : start + PAIRS_AT_ONCE]
            trimmed = [trim_pair(sides[0][i], sides[1][i], room) for i in group]
            tokens = encoder.frame_pairs([first for first, _ in trimmed], [second for _, second in trimmed])
            vectors[group] = encoder(tokens.to(encoder.device)).float().cpu().numpy()
    return vectors


def _ids(encoder: Encoder, texts: list[str]) -> list[npt.NDArray[np.int32]]:
    flat, lengths = encoder.text_tokenizer.opening(texts)
    return np.split(flat, np.cumsum(lengths)[:-1])
