"""The classifier that a run leaves with its model: the method's own, or one fitted to the final vectors; calibrated.

The temperature and the measures are those of records that training never saw; each record is measured with the
temperature that the other folds of them give, so none is judged by what was fitted to it. Where too few are held out,
the temperature stays 1 and the facts say that nothing was calibrated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.data.image_corpus import ImageCorpus
from isotrope.encoders.classifier import Classifier
from isotrope.encoders.cut_texts import counting_cut
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.encoders.prediction import pair_vectors
from isotrope.heads.label_sets import LabelSets
from isotrope.heads.logistic_head import FOLDS, fit_head, measures_of, of_other_folds
from isotrope.measures.temperature_scaling import fit_temperature
from isotrope.methods.frame.classifying import Classifying
from isotrope.training.building import Built

FEWEST = 20  # held-out records that a temperature is fitted to
MOST = 1000
FITTED = 2000  # training texts that a classifier is fitted to, where the method has none of its own
STRENGTH = 0.1  # C there: classes of vectors that were trained to part need no search


def kept_classifier(built: Built, encoder: Encoder) -> Classifier | None:
    """None where the method learns no classes, or the encoder gives a vector to no text."""
    method, corpus = built.combined.method, built.feed.corpus
    if not isinstance(method, Classifying):
        return None
    found, seed = method.classifier(), built.settings.seed
    if found is None:
        rows = drawn(built.feed.rows, FITTED, seed)
        labels = LabelSets.of(Records(corpus, rows.tolist()).values())
        found = fit_head(vectors_of(encoder, corpus, rows), labels, STRENGTH, seed=seed).classifier
    if found.task != "classes":
        return found
    known = {name: number for number, name in enumerate(found.names)}
    held = drawn(built.held_usable, MOST, seed) if built.hidden else built.held[:0]
    values = Records(corpus, held.tolist()).values()
    wanted = np.array([known.get(value, -1) for value in values], dtype=np.int64)
    held, wanted = held[wanted >= 0], wanted[wanted >= 0]
    if len(held) < FEWEST:
        few = f"not calibrated: {len(held)} held-out records, and {FEWEST} are needed"
        return found.with_temperature(1.0, {"calibration": few, "measures": {}})
    scores = found.logits(vectors_of(encoder, corpus, held))
    temperature = fit_temperature(scores, wanted)
    said = f"temperature of {len(held):,} held-out records"
    folds = np.random.default_rng(seed).permutation(len(held)) % FOLDS
    measures = measures_of(scores, wanted, of_other_folds(scores, wanted, folds), found.task)
    return found.with_temperature(temperature, {"calibration": said, "measures": measures})


def drawn(rows: Rows, most: int, seed: int) -> Rows:
    """All rows, or ``most`` of them drawn at random, in order."""
    return rows if len(rows) <= most else np.sort(np.random.default_rng(seed).permutation(rows)[:most])


def vectors_of(encoder: Encoder, corpus: Corpus, rows: Rows) -> npt.NDArray[np.float32]:
    """The vectors of the records' texts, of their pairs, or of their images."""
    if isinstance(corpus, ImageCorpus) and isinstance(encoder, ImageEncoder):
        return encoder.encode_rows(corpus, rows)
    records = Records(corpus, rows.tolist())
    with counting_cut():  # how many records are cut was said when training began
        if len(records.fields) > 1:
            return pair_vectors(encoder, list(zip(*(records.texts(field) for field in records.fields), strict=True)))
        return np.asarray(encoder.encode(records.texts()))
