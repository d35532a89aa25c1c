"""`isotrope train head`: encode labelled texts once, fit a calibrated classifier, save it with the encoder.

The encoder stays as it is: the run has no updates, takes seconds, and its model gives the same vectors as before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.data.corpus import Corpus, Records, open_corpus
from isotrope.encoders.cut_texts import counting_cut
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.encoders.model_card import COMMAND
from isotrope.encoders.onnx_encoder import OnnxEncoder
from isotrope.encoders.read_out import ReadOut, named
from isotrope.errors import InputError
from isotrope.files import check_run_folder, dated_folder, written_folder
from isotrope.heads.head_settings import HEAD, HeadSettings
from isotrope.heads.label_rows import labelled_records
from isotrope.heads.label_sets import NOTHING, LabelSets
from isotrope.heads.logistic_head import fit_head
from isotrope.progress import say
from isotrope.training.plan import DEFAULT_MODEL, Place
from isotrope.training.run import Run
from isotrope.training.run_circumstances import card_command, surroundings
from isotrope.training.run_folder import RunFolder

INSTEAD = "builtin"  # of the default model: a language model that is not trained further has poor vectors


def run_head(
    data: Place | Sequence[Any],
    model: Place | Encoder,
    output: Place | None,
    settings: HeadSettings,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
) -> Run:
    """Fit the classifier and write the run folder: run.json, metrics.jsonl, model/."""
    start = INSTEAD if model == DEFAULT_MODEL else model
    encoder = _opened(start, pooling)
    corpus = _corpus(data, encoder, columns, settings.multi_label)
    labels = LabelSets.of(Records(corpus, range(len(corpus))).values(), settings.multi_label)
    target = Path(output) if output is not None else dated_folder(HEAD)
    facts = {
        "method": HEAD,
        "data": {"fingerprint": corpus.fingerprint, "record_type": corpus.record_type.name, **asdict(corpus.counts)},
        "model": {
            "name": "an encoder in memory" if isinstance(start, Encoder) else str(start),
            "fingerprint": encoder.fingerprint(),
            "pooling": encoder.pooling.name,
        },
        "settings": asdict(settings),
        "source": str(data) if isinstance(data, str | os.PathLike) else "a list in memory",
        "seed": settings.seed,
        **surroundings(str(encoder.device)),
    }
    with counting_cut() as counted:
        texts = Records(corpus, range(len(corpus))).texts()
        vectors = np.asarray(encoder.encode(texts))
    counted.say()
    fitted = fit_head(vectors, labels, settings.strength, settings.balanced, settings.seed, texts)
    encoder.classifier = fitted.classifier
    if command := card_command():
        encoder.facts = {**encoder.facts, COMMAND: command}
    line = {"step": 0, "evaluation": fitted.measures}
    _write(target, facts, line, encoder)
    if not fitted.measures:
        say("Nothing could be held out, so the probabilities are not calibrated; bring two texts of a class.")
    read_out = ReadOut(encoder.pooling.name, "as given" if named(pooling) else "the model's own: it is not trained")
    chosen = f"strength {fitted.strength:g}, temperature {fitted.classifier.temperature:.3f}"
    return Run(encoder, [line], 0, chosen, target, corpus, read_out, np.arange(0))


def _write(target: Path, facts: dict[str, Any], line: dict[str, Any], encoder: Encoder) -> None:
    """The whole folder at once: there is no half of such a run that could be resumed."""
    check_run_folder(target, resume=False)
    with written_folder(target, whole="run.json") as temporary:
        folder = RunFolder(temporary)
        with folder.alone(resume=False, main=True):
            folder.begin(facts, resume=False)
            folder.log(line)
            encoder.save(folder.model)
        ours = (temporary / "run.json").read_bytes()
    if (target / "run.json").read_bytes() != ours:
        raise InputError(f"{target}: another process wrote its run here meanwhile; choose another output.")


def _opened(model: Place | Encoder, pooling: str | None) -> Encoder:
    """An encoder of the run's own over the same modules."""
    if isinstance(model, Encoder):
        if named(pooling):
            raise InputError("The pooling of an encoder in memory is fixed; load it with the pooling you want.")
        return model.with_parts(list(model.parts)).train(model.training)
    found = load(model, pooling)
    if isinstance(found, OnnxEncoder):
        raise InputError(f"{model} is an export, which keeps no classifier; fit the head of the model it was made of.")
    return found


def _corpus(data: Place | Sequence[Any], encoder: Encoder, columns: Sequence[str] | None, multi_label: bool) -> Corpus:
    """Labelled texts; where several labels are allowed, a text may have none."""
    if not multi_label:
        try:
            return open_corpus(data, ["labelled"], encoder.text_tokenizer, columns)
        except InputError as error:
            if "a list found" not in str(error):
                raise
            raise InputError(f"{error} A list of labels needs multi_label.", "multi_label") from error
    rows = [(record.texts[0], record.value or NOTHING) for record in labelled_records(data, columns)]
    return open_corpus(rows, ["labelled"], encoder.text_tokenizer)
