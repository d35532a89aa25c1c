"""A training run from beginning to end:

what is asked is checked, the data are opened, the method is trained, the encoder is saved.
"""

from __future__ import annotations

import copy
import os
import platform
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from isotrope.data.batches import Rows, epoch_size
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.data.held_out import hold_out
from isotrope.data.sources import find_records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load as load
from isotrope.errors import InputError
from isotrope.evaluation.label_free import label_free, natural_pairs
from isotrope.evaluation.sts import spearman_of_file
from isotrope.methods.frame.auxiliary import Beside
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import find
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.methods.rtd import ReplacedTokenDetection, beside_a_contrast
from isotrope.training.checkpoints import RunFolder
from isotrope.training.loop import Judge, Judgement, TrainingWarning, count_steps, make_accelerator, train_loop
from isotrope.training.own_task import with_own_task
from isotrope.training.settings import LoopSettings, resolve
from isotrope.training.tactics.chain_thaw import thaw_of
from isotrope.version import __version__

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Run:
    """A finished training run.

    ``encoder`` holds the weights of ``selected_step``; ``folder`` holds everything on disk.
    """

    encoder: Encoder
    history: list[dict[str, Any]]
    selected_step: int
    selected_by: str
    folder: Path
    corpus: Corpus


def train(
    method: str,
    data: str | os.PathLike[str] | Sequence[Any],
    model: str | os.PathLike[str] | Encoder = "builtin-base",
    output: str | os.PathLike[str] | None = None,
    *,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    split: bool = False,
    eval_data: Files | None = None,
    resume: bool = False,
    **settings: Any,
) -> Run:
    """Train an encoder with a method on a file of text (or a list of records).

    ``settings`` are the method's own and the loop's, by name (``isotrope methods NAME`` lists them). Checkpoints are
    chosen by Spearman on ``eval_data`` (a file of scored pairs, or the mean over several) where it is given, otherwise
    without labels: how well held-out texts find their natural partner.
    """
    kind = find(method)
    method_settings, loop_settings = resolve({**kind.loop, **settings}, kind.Settings, LoopSettings)
    kind.check(method_settings)
    loop_settings.check()
    if kind.starts_anew:
        _check_anew(method, model, pooling, loop_settings)
    for weight, auxiliary in (("mlm_weight", MaskedLanguageModel), ("rtd_weight", ReplacedTokenDetection)):
        if getattr(loop_settings, weight) > 0 and issubclass(kind, auxiliary):
            raise InputError(f"{method} has {auxiliary.title} among its own terms; leave {weight} out.")
    folder = RunFolder(Path(output) if output is not None else _new_folder(method))
    if resume and output is None:
        raise InputError("To resume a run, name its folder with --output.")

    accelerator = make_accelerator(loop_settings, folder)
    if kind.starts_anew:
        records = find_records(data, kind.record_types(method_settings), columns, split).records
        encoder = kind.begin(method_settings, records, loop_settings.seed).to(accelerator.device)
    else:
        encoder = _online(model, pooling, accelerator.device, kind.needs_language_head or loop_settings.mlm_weight > 0)
    with accelerator.main_process_first():
        corpus = _open(data, kind.record_types(method_settings), encoder, columns, split)
    train_rows, held_rows = hold_out(corpus, loop_settings.held_out, loop_settings.seed)
    train_rows, held_usable = (kind.usable(method_settings, corpus, rows) for rows in (train_rows, held_rows))
    if "batch_size" not in settings:
        loop_settings = _fitting(loop_settings, corpus, kind.batches, accelerator.num_processes)
    _check_size(corpus, kind.batches, train_rows, held_rows, loop_settings)
    _check_share(loop_settings.batch_size, accelerator.num_processes)
    kind.check_batch(method_settings, loop_settings.batch_size, corpus)
    tests = kind.tests(
        method_settings, corpus, lambda file: _open(file, [corpus.record_type.name], encoder, columns, split)
    )
    if kind.scores_itself and eval_data:
        raise InputError(
            f"{method} is scored by its own task; leave eval_data out. `isotrope methods {method}` says how to give a test."
        )
    if kind.scores_itself and not (len(held_usable) or tests):
        held_usable = train_rows
    judge = (
        _no_judge if kind.scores_itself else make_judge(corpus, held_rows if len(held_rows) else train_rows, eval_data)
    )

    start = encoder.fingerprint()
    facts = {
        "method": method,
        "data": {"fingerprint": corpus.fingerprint, "record_type": corpus.record_type.name, **asdict(corpus.counts)},
        "model": {
            "name": "none"
            if kind.starts_anew
            else "an encoder in memory"
            if isinstance(model, Encoder)
            else str(model),
            "fingerprint": start,
            "pooling": encoder.pooling.name,
        },
        "settings": {**asdict(method_settings), **asdict(loop_settings)},
        "source": str(data) if isinstance(data, str | os.PathLike) else "a list in memory",
        "eval_data": [str(file) for file in files_of(eval_data)],
        "seed": loop_settings.seed,
        "processes": accelerator.num_processes,
        "versions": _versions(),
        "machine": {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "device": str(accelerator.device),
        },
        "command": " ".join(sys.argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    torch.manual_seed(loop_settings.seed)  # heads are drawn alike in every process
    trained: Method = kind(method_settings, encoder, loop_settings.max_length, corpus)
    if loop_settings.mlm_weight > 0:
        beside = MaskedLanguageModel(MLMSettings(), encoder, loop_settings.max_length)
        trained = Beside(trained, beside, loop_settings.mlm_weight)
    if loop_settings.rtd_weight > 0:
        detection = ReplacedTokenDetection(beside_a_contrast(), encoder, loop_settings.max_length)
        trained = Beside(trained, detection, loop_settings.rtd_weight)
    thaw_of(
        trained, loop_settings, count_steps(epoch_size(trained.batches, corpus, train_rows), loop_settings)
    )  # refuses what cannot be
    if accelerator.is_main_process:
        folder.begin(facts, resume)
    accelerator.wait_for_everyone()
    for sentence in trained.remarks() if accelerator.is_main_process else []:
        warnings.warn(sentence, TrainingWarning, stacklevel=2)
    judge = with_own_task(judge, trained, corpus, held_usable, loop_settings.batch_size, loop_settings.seed, tests)
    finished = train_loop(trained, corpus, train_rows, loop_settings, folder, accelerator, judge, resume)

    result = trained.export().eval().requires_grad_()  # what a method kept still may learn in the next run
    result.facts = {
        "method": method,
        "settings": facts["settings"],
        "data": facts["data"],
        "selected_step": finished.selected_step,
    }
    if accelerator.is_main_process:
        result.save(folder.model)
        if kind.keeps == "best":
            _say_if_no_better(finished.history)
    accelerator.wait_for_everyone()
    chosen_by = next(line["chosen_by"] for line in finished.history if "chosen_by" in line)
    selected_by = f"the best by {chosen_by}" if kind.keeps == "best" else "the last"
    return Run(result, finished.history, finished.selected_step, selected_by, folder.folder, corpus)


def make_judge(corpus: Corpus, held_rows: Rows, eval_data: Files | None) -> Judge:
    pairs = natural_pairs(corpus, held_rows)
    files = files_of(eval_data)
    if len(pairs[1]) < 2 and not files:
        raise InputError(
            "The texts are too short to hold anything out for choosing a checkpoint; give --eval-data with scored pairs."
        )

    def judge(encoder: Encoder) -> Judgement:
        measures: dict[str, float] = {}
        chosen_by = "retrieval_mrr"
        if len(pairs[1]) >= 2:
            measures.update(label_free(encoder, pairs))
        if files:
            measures |= mean_spearman(encoder, files)
            chosen_by = "spearman"
        return Judgement(measures, chosen_by)

    return judge


def _no_judge(encoder: Encoder) -> Judgement:
    """Of a method that scores itself."""
    return Judgement({}, "")


def files_of(given: Files | None) -> list[str | os.PathLike[str]]:
    return [] if given is None else [given] if isinstance(given, str | os.PathLike) else list(given)


def mean_spearman(encoder: Encoder, files: Sequence[str | os.PathLike[str]]) -> dict[str, float]:
    """Spearman × 100, the mean of several files first."""
    found = {Path(file).name.split(".tsv")[0]: 100 * spearman_of_file(encoder, file) for file in files}
    mean = {"spearman": sum(found.values()) / len(found)} if found else {}
    return {**mean, **({f"spearman {name}": value for name, value in found.items()} if len(found) > 1 else {})}


def _check_anew(
    method: str, model: str | os.PathLike[str] | Encoder, pooling: str | None, settings: LoopSettings
) -> None:
    """The default model is not asked for, so it is no mistake."""
    if model != "builtin-base":
        raise InputError(f"{method} starts from nothing but the data; leave the model out.")
    if pooling not in (None, "mean"):
        raise InputError(f"{method} makes vectors that are read out by their mean; leave the pooling out.")
    for weight in ("mlm_weight", "rtd_weight"):
        if getattr(settings, weight) > 0:
            raise InputError(f"{weight} needs a transformer that reads the text, and {method} has none; leave it out.")


def _online(model: str | os.PathLike[str] | Encoder, pooling: str | None, device: Any, language_head: bool) -> Encoder:
    if not isinstance(model, Encoder):
        return load(model, pooling, device, language_head)
    if language_head and model.language_model is None:
        raise InputError("This needs the masked-language head; load the model with language_head=True.")
    if pooling is not None:
        raise InputError("The pooling of an encoder in memory is fixed; load it with the pooling you want.")
    return copy.deepcopy(model).to(device)  # the caller's encoder stays as it is


def _open(data: Any, kinds: Sequence[str], encoder: Encoder, columns: Sequence[str] | None, split: bool) -> Corpus:
    tokenizer = encoder.text_tokenizer
    return open_corpus(data, kinds, tokenizer, columns, split)


def _fitting(settings: LoopSettings, corpus: Corpus, order: str, processes: int) -> LoopSettings:
    """The default batch size, or a smaller one where the data would not fill two batches."""
    different, what = _different(corpus, order)
    size = min(settings.batch_size, different // 2 // processes * processes)
    if size == settings.batch_size or size < 2:
        return settings
    warnings.warn(
        f"{different:,} different {what} are few: batch_size is {size} instead of {settings.batch_size}.",
        TrainingWarning,
        stacklevel=3,
    )
    return replace(settings, batch_size=size)


def _check_size(corpus: Corpus, order: str, train: Rows, held: Rows, settings: LoopSettings) -> None:
    different, what = _different(corpus, order)
    if different < 2:
        same = f"{corpus.counts.records:,} records that are all the same"
        found = same if what == "records" and corpus.counts.records > 1 else f"one {what[:-1]}"
        raise InputError(f"The data holds {found}; contrast needs at least two different ones.")
    left = epoch_size(order, corpus, train)
    if min(different, left) < settings.batch_size:
        aside = f" and {epoch_size(order, corpus, held):,} held out" if len(held) else ""
        raise InputError(
            f"The data holds {different:,} different {what} ({left:,} to train on{aside}), fewer than batch_size "
            f"({settings.batch_size}); lower it or bring more text."
        )


def _check_share(batch_size: int, processes: int) -> None:
    if batch_size % processes:
        raise InputError(f"batch_size {batch_size} cannot be shared by {processes} processes.")


def _different(corpus: Corpus, order: str) -> tuple[int, str]:
    """How many different records an order can deal out, and what they are."""
    if order == "by-document":
        return corpus.counts.documents, f"{corpus.record_type.whole or 'document'}s"
    return corpus.counts.distinct, "records"


def _new_folder(method: str) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{method}-{stamp}"


def _say_if_no_better(history: Sequence[Mapping[str, Any]]) -> None:
    scores = {line["step"]: line["score"] for line in history if "score" in line}
    if 0 in scores and len(scores) > 1 and max(score for step, score in scores.items() if step) <= scores[0]:
        by = next(line["chosen_by"] for line in history if "chosen_by" in line)
        warnings.warn(
            f"Training did not improve {by}: {scores[0]:.4f} before, at best {max(s for step, s in scores.items() if step):.4f} after; "
            "try a lower learning rate, fewer steps, or other text.",
            TrainingWarning,
            stacklevel=3,
        )


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        "isotrope": __version__,
        **{name: version(name) for name in ("torch", "transformers", "accelerate", "numpy")},
    }
