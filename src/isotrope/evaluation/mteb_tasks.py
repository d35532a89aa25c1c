"""Tasks of the MTEB benchmark, run by the mteb package itself: ``mteb:STSBenchmark`` and every other name it knows.

An adapter only: data, protocol and scores are those of mteb (version 2), which loads its data from the Hugging Face
hub. Use it for numbers to stand next to a leaderboard; the other suites work offline, on files. MTEB's SICK-R has all
9,927 pairs where ``sts`` has the 4,927 of the test part, and its STS12–16 are what ``aggregation`` all is here. Nothing
of mteb's own cache of results is used: it goes by the name of a model, not by its weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors

PREFIX = "mteb:"
COLUMNS = ("task", "split", "subset", "measure", "score")


class MtebEncoder:
    """An encoder as mteb's ``EncoderProtocol`` wants it. No prompt is added but the encoder's own."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def encode(self, inputs: Iterable[Mapping[str, Any]], **told: Any) -> Any:
        """[texts, dimension]: unit vectors of each batch's ``text``; task, split and kind of text change nothing."""
        texts = [str(text) for batch in inputs for text in batch["text"]]
        return TextVectors.encoded(self.encoder, texts, normalize=True).of(texts)

    def similarity(self, first: Any, second: Any) -> torch.Tensor:
        """Cosines of all rows with all rows."""
        left, right = (_unit(side) for side in (first, second))
        return left @ right.T

    def similarity_pairwise(self, first: Any, second: Any) -> torch.Tensor:
        """Cosines, row by row."""
        left, right = (_unit(side) for side in (first, second))
        return (left * right).sum(dim=-1)

    @property
    def mteb_model_meta(self) -> Any:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        known = {
            "name": "isotrope/encoder",
            "revision": self.encoder.fingerprint(),
            "embed_dim": self.encoder.dimension,
            "max_tokens": self.encoder.max_length,
            "similarity_fn_name": ScoringFunction.COSINE,
        }
        return ModelMeta.create_empty(overwrites=known)


class MtebTask(Suite):
    """One task of MTEB. It has a card, and so is a suite, when ``task_suite`` gives it the name of its task."""

    task: ClassVar[str]

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        find_mteb_task(cls.task)

    def run(self, encoder: Encoder, options: Options) -> Results:
        return evaluate_mteb(encoder, find_mteb_task(self.task))

    def summary(self, results: Results) -> dict[str, float]:
        return {f"mteb_{self.task}": results.scores["mteb"][self.task]["main_score"]}


@cache
def task_suite(name: str) -> type[MtebTask]:
    """The suite of ``mteb:TASK``. It stands in no file of this folder, so the registry does not list it."""
    task = name.removeprefix(PREFIX)
    card = SuiteCard(name, f"{task} of MTEB, by the mteb package", "mteb-v2", (), has_items=False)
    return type(task, (MtebTask,), {"card": card, "task": task, "__module__": "mteb", "__doc__": MtebTask.__doc__})


def find_mteb_task(name: str) -> Any:
    """The task of this name, its data not loaded yet."""
    try:
        import mteb
    except ImportError as error:
        raise InputError(
            f"The suite {PREFIX}{name} needs the package mteb; pip install 'isotrope[mteb]'.", setting="suite"
        ) from error
    try:
        return mteb.get_task(name)
    except (KeyError, ValueError) as error:
        said = str(error.args[0]) if error.args else ""
        raise InputError(f"mteb has no task '{name}': {said}", setting="suite") from error


def evaluate_mteb(encoder: Encoder, task: Any) -> Results:
    """The main score of each split and subset × 100, their mean, and all that mteb measured."""
    import mteb

    name = task.metadata.name
    try:
        task.load_data()
    except Exception as error:  # whatever the hub, its cache or the data themselves raise
        raise InputError(f"The data of {PREFIX}{name} could not be loaded from the hub: {error}") from error
    found = mteb.evaluate(
        MtebEncoder(encoder), task, cache=None, co2_tracker=False, show_progress_bar=False
    ).task_results[0]
    main = task.metadata.main_score
    parts = [(split, each) for split, subsets in found.scores.items() for each in subsets]
    rows = [(name, split, each["hf_subset"], main, f"{100 * each['main_score']:.2f}") for split, each in parts]
    mean = 100 * float(np.mean([each["main_score"] for _, each in parts]))
    if len(rows) > 1:
        rows.append(("mean", "", "", main, f"{mean:.2f}"))
    protocol = {
        "protocol": "mteb-v2",
        "mteb": mteb.__version__,
        "data": f"{task.metadata.dataset['path']} at {task.metadata.dataset['revision']}",
        "vectors": "unit length, no prompt but the encoder's own",
        **read_out(encoder),
    }
    scores = {"mteb": {name: {"main_score": mean, "measure": main, "splits": found.scores}}}
    return Results(scores, protocol, COLUMNS, rows)


def _unit(vectors: Any) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.as_tensor(np.asarray(vectors)).float(), dim=-1)
