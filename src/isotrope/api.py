"""The public functions: each joins the rooms for one job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotrope.data.leaks import LeakReport, find_leaks, protect
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.encoders.completion import Completion
from isotrope.encoders.completion import complete as find_completions
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load as load
from isotrope.encoders.paraphrase import Paraphraser
from isotrope.encoders.saving import check_target
from isotrope.errors import InputError, nearest
from isotrope.evaluation.checkpoint_judge import make_judge, mean_spearman
from isotrope.evaluation.counterfactual import evaluate_counterfactual
from isotrope.evaluation.geometry_judge import evaluate_geometry, run_of
from isotrope.evaluation.results import Results
from isotrope.evaluation.sts import data_folder, evaluate_sts
from isotrope.evaluation.transfer import evaluate_transfer
from isotrope.files import written_file
from isotrope.methods.frame.settings import check, resolve
from isotrope.progress import bar
from isotrope.search.exact import Hit, index_file
from isotrope.spaces.flat_maps import Map, check_table, write_points
from isotrope.spaces.space import Space
from isotrope.spaces.space_registry import find as find_space
from isotrope.training.plan import DEFAULT_MODEL, Files, Place, files_of, make_plan
from isotrope.training.pretrain_run import run_pretrain
from isotrope.training.pretrain_settings import PretrainSettings
from isotrope.training.run import Run as Run
from isotrope.training.run import run_plan

SUITES = ("sts", "transfer", "geometry", "counterfactual")


def train(
    method: str,
    data: Place | Sequence[Any],
    model: Place | Encoder = DEFAULT_MODEL,
    output: Place | None = None,
    *,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    split: bool = False,
    eval_data: Files | None = None,
    resume: bool = False,
    **settings: Any,
) -> Run:
    """Train an encoder with a method on a file of text (or a list of records).

    ``settings`` are those of the method, the loop, the auxiliary losses and the tactics, by name (``isotrope methods
    NAME`` lists them). Checkpoints are chosen by Spearman on ``eval_data`` (a file of scored pairs, or the mean over
    several) where it is given, otherwise without labels: how well held-out texts find their natural partner.
    """
    plan = make_plan(
        method,
        data,
        model,
        output,
        pooling=pooling,
        columns=columns,
        split=split,
        eval_data=eval_data,
        resume=resume,
        **settings,
    )
    return run_plan(plan, make_judge)


def pretrain(
    text: Sequence[Place],
    output: Place,
    *,
    tokenizer: Place | None = None,
    eval_data: Files | None = None,
    resume: bool = False,
    **settings: Any,
) -> Run:
    """A small encoder from text alone; ``complete`` is False when the minutes given ran out first (resume goes on).

    The vocabulary is learned from the text, or taken from the model that ``tokenizer`` names.
    """
    (chosen,) = resolve(settings, PretrainSettings)
    check(chosen)
    vocabulary = None if tokenizer is None else load(tokenizer, device="cpu").tokenizer

    def measure(encoder: Encoder) -> dict[str, float]:
        return mean_spearman(encoder, files_of(eval_data))

    return run_pretrain([Path(source) for source in text], Path(output), chosen, measure, resume, vocabulary)


def evaluate(
    encoder: Encoder | str | os.PathLike[str],
    suite: str = "sts",
    data_dir: str | os.PathLike[str] | None = None,
    seeds: int | Sequence[int] = 0,
    aggregation: str = "all",
    texts: str | os.PathLike[str] | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Results:
    """Judge an encoder. The only chance in it, the bootstrap's for STS and the samples' for geometry, takes the first
    of ``seeds``; transfer cuts its folds anew for each of them, and gives the mean.

    ``texts`` (a file or a list) is what ``geometry`` looks at, and what ``counterfactual`` makes triples of; without
    it, the sentences of STS-B and of the movie reviews.
    """
    if suite not in SUITES:
        raise InputError(f"No suite is called '{suite}'{nearest(suite, SUITES)}")
    subject = _loaded(encoder)
    seed = seeds if isinstance(seeds, int) else next(iter(seeds), 0)
    if suite == "geometry":
        run = None if isinstance(encoder, Encoder) else run_of(encoder)
        return evaluate_geometry(subject, texts, data_dir, seed, columns, run)
    if suite == "counterfactual":
        return evaluate_counterfactual(subject, texts, data_dir, seed, columns)
    if texts is not None:
        raise InputError(
            f"Texts belong to the geometry suite; {suite} has its own. Add --suite geometry, or leave --text out."
        )
    if suite == "transfer":
        return evaluate_transfer(subject, data_dir, [seeds] if isinstance(seeds, int) else list(seeds) or [0])
    return evaluate_sts(subject, data_dir, aggregation, seed)


def fit_space(
    name: str, encoder: Encoder | str | os.PathLike[str], texts: str | os.PathLike[str] | Sequence[str], **settings: Any
) -> Encoder:
    """A copy of an encoder with a map behind it, fitted to the vectors of ``texts`` (a list, or a file of sentences),
    without labels.

    ``isotrope methods NAME`` lists the settings. The encoder given stays as it is.
    """
    space = _space(name, settings)
    given = sentences_of(texts) if isinstance(texts, str | os.PathLike) else list(texts)
    return space.fit(_loaded(encoder), given)


def write_space(
    name: str,
    model: str | os.PathLike[str],
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Fit a space to a file and save the mapped model; of sne and t-sne, which have no map, the table of points.

    Says what was written.
    """
    space = _space(name, settings)
    target = check_table(output) if isinstance(space, Map) else check_target(output)
    texts = sentences_of(text, columns)
    encoder = load(model, pooling)
    if isinstance(space, Map):
        write_points(target, texts, space.points(encoder, texts))
        return {"space": name, "output": str(target), "texts": len(texts), "dimension": 2}
    mapped = space.fit(encoder, texts)
    mapped.save(target)
    return {"space": name, "output": str(target), "texts": len(texts), "dimension": mapped.dimension}


def _space(name: str, settings: Mapping[str, Any]) -> Space:
    kind = find_space(name)
    (chosen,) = resolve(settings, kind.Settings)
    kind.check(chosen)
    return kind(chosen)


def sentences_of(text: str | os.PathLike[str], columns: Sequence[str] | None = None) -> list[str]:
    """The sentences of a file; empty lines are left out."""
    found = [record.texts[0] for record in read(text, record_type_named("sentences"), columns) if record.texts[0]]
    if not found:
        raise InputError(f"{text}: no sentences found.")
    return found


def encode_file(
    encoder: Encoder | str | os.PathLike[str],
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    normalize: bool = False,
) -> dict[str, Any]:
    """Write the vectors of a file's sentences, a row each, as .npy in float32. Says what was written."""
    import numpy as np

    target = Path(output)
    if target.suffix != ".npy":
        raise InputError(f"{target}: vectors are written as .npy.")
    texts = [record.texts[0] for record in read(text, record_type_named("sentences"), columns)]
    full = [sentence for sentence in texts if sentence]
    if not full:
        raise InputError(f"{text}: no sentences found.")
    vectors = _loaded(encoder).encode(full, normalize_embeddings=normalize)
    with written_file(target) as temporary, open(temporary, "wb") as file:
        np.save(file, vectors)
    return {
        "output": str(target),
        "rows": len(vectors),
        "dimension": vectors.shape[1],
        "empty_left_out": len(texts) - len(full),
    }


def search(
    encoder: Encoder | str | os.PathLike[str],
    texts: str | os.PathLike[str],
    query: str,
    top: int = 5,
    columns: list[str] | None = None,
) -> list[Hit]:
    """The sentences of a file that are nearest to a query."""
    subject = _loaded(encoder)
    return index_file(subject, texts, columns).search([query], top)[0]


def complete(encoder: Encoder | str | os.PathLike[str], concept: str, relation: str, top: int = 5) -> list[Completion]:
    """The concepts that stand in ``relation`` to ``concept``, by a model that ``train("lre", …)`` made; the nearest
    first.
    """
    return find_completions(_loaded(encoder), concept, relation, top)


def paraphrase(
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    model: Encoder | str | os.PathLike[str] = "builtin-base",
    share: float = 0.15,
    seed: int = 42,
    columns: Sequence[str] | None = None,
) -> dict[str, int]:
    """Write pairs for CERT: each sentence of a file, and itself with a ``share`` of its words replaced by the model's
    language head.

    A sentence without a word that can be replaced is left out. The result says how many pairs were written and how many
    left out.
    """
    target = Path(output)
    if target.suffix != ".tsv":
        raise InputError(f"{target}: pairs are written as .tsv.")
    encoder = model if isinstance(model, Encoder) else load(model, language_head=True)
    paraphraser = Paraphraser(encoder, share, seed)
    texts = sentences_of(text, columns)
    written = 0
    with (
        written_file(target) as temporary,
        open(temporary, "w", encoding="utf-8") as lines,
        bar("paraphrasing", len(texts)) as advance,
    ):
        lines.write("anchor\tpositive\n")
        for sentence, other in paraphraser.pairs(texts):
            advance(1)
            if other is not None:
                lines.write(f"{sentence}\t{other}\n")
                written += 1
        if not written:
            raise InputError(f"{text}: no sentence with a word that could be replaced was found.")
    return {"pairs": written, "left_out": len(texts) - written}


def protected_files(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """What an encoder is judged by: every STS file (STS-B's training part holds pairs of STS12–16), and the transfer
    sets but their training parts."""
    folder = data_folder(data_dir)
    transfer = [file for file in sorted(folder.glob("transfer/*.tsv*")) if ".train." not in file.name]
    return [*sorted(folder.glob("sts/*.tsv*")), *transfer]


def leaks(
    text: Sequence[str | os.PathLike[str]],
    against: Sequence[str | os.PathLike[str]] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
) -> LeakReport:
    """Lines of a training text that hold a sentence of ``against``; by default of the STS, SICK and transfer sets of
    ``data_dir``.
    """
    files = [*(against or []), *(protected_files(data_dir) if data_dir is not None or not against else [])]
    return find_leaks(text, protect(files), output)


def _loaded(encoder: Encoder | str | os.PathLike[str]) -> Encoder:
    return encoder if isinstance(encoder, Encoder) else load(encoder)
