"""The public functions: each joins the rooms for one job."""

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
from isotrope.data.kinds import kind_named
from isotrope.data.leaks import LeakReport, find_leaks, protect
from isotrope.data.readers import read
from isotrope.data.sources import find_records
from isotrope.encoders.completion import Completion
from isotrope.encoders.completion import complete as find_completions
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load as load
from isotrope.encoders.paraphrase import Paraphraser
from isotrope.encoders.saving import check_target
from isotrope.errors import InputError, nearest
from isotrope.evaluation.counterfactual import evaluate_counterfactual
from isotrope.evaluation.geometry_judge import evaluate_geometry, run_of
from isotrope.evaluation.label_free import label_free, natural_pairs
from isotrope.evaluation.results import Results
from isotrope.evaluation.sts import data_folder, evaluate_sts, spearman_of_file
from isotrope.evaluation.transfer import evaluate_transfer
from isotrope.files import written_file
from isotrope.methods.base import Method
from isotrope.methods.beside import Beside
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.methods.registry import find
from isotrope.methods.rtd import ReplacedTokenDetection, beside_a_contrast
from isotrope.progress import bar
from isotrope.search.exact import Hit, index_file
from isotrope.spaces.base import Space
from isotrope.spaces.maps import Map, check_table, write_points
from isotrope.spaces.registry import find as find_space
from isotrope.training.chain_thaw import thaw_of
from isotrope.training.checkpoints import RunFolder
from isotrope.training.loop import Judge, Judgement, TrainingWarning, count_steps, make_accelerator, train_loop
from isotrope.training.own_task import with_own_task
from isotrope.training.pretraining import pretrain as pretrain_encoder
from isotrope.training.pretraining_settings import PretrainSettings
from isotrope.training.settings import LoopSettings, resolve
from isotrope.version import __version__

SUITES = ("sts", "transfer", "geometry", "counterfactual")
Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Run:
    """A finished training run. ``encoder`` holds the weights of ``selected_step``; ``folder`` holds everything on disk."""

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

    ``settings`` are the method's own and the loop's, by name (``isotrope methods NAME`` lists them). Checkpoints are chosen by Spearman on
    ``eval_data`` (a file of scored pairs, or the mean over several) where it is given, otherwise without labels: how well held-out texts
    find their natural partner.
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
        records = find_records(data, kind.kinds(method_settings), columns, split).records
        encoder = kind.begin(method_settings, records, loop_settings.seed).to(accelerator.device)
    else:
        encoder = _online(model, pooling, accelerator.device, kind.needs_language_head or loop_settings.mlm_weight > 0)
    with accelerator.main_process_first():
        corpus = _open(data, kind.kinds(method_settings), encoder, columns, split)
    train_rows, held_rows = hold_out(corpus, loop_settings.held_out, loop_settings.seed)
    train_rows, held_usable = (kind.usable(method_settings, corpus, rows) for rows in (train_rows, held_rows))
    if "batch_size" not in settings:
        loop_settings = _fitting(loop_settings, corpus, kind.batches, accelerator.num_processes)
    _check_size(corpus, kind.batches, train_rows, held_rows, loop_settings)
    _check_share(loop_settings.batch_size, accelerator.num_processes)
    kind.check_batch(method_settings, loop_settings.batch_size, corpus)
    tests = kind.tests(method_settings, corpus, lambda file: _open(file, [corpus.kind.name], encoder, columns, split))
    if kind.scores_itself and eval_data:
        raise InputError(f"{method} is scored by its own task; leave eval_data out. `isotrope methods {method}` says how to give a test.")
    if kind.scores_itself and not (len(held_usable) or tests):
        held_usable = train_rows
    judge = _no_judge if kind.scores_itself else make_judge(corpus, held_rows if len(held_rows) else train_rows, eval_data)

    start = encoder.fingerprint()
    facts = {
        "method": method,
        "data": {"fingerprint": corpus.fingerprint, "kind": corpus.kind.name, **asdict(corpus.counts)},
        "model": {
            "name": "none" if kind.starts_anew else "an encoder in memory" if isinstance(model, Encoder) else str(model),
            "fingerprint": start,
            "pooling": encoder.pooling.name,
        },
        "settings": {**asdict(method_settings), **asdict(loop_settings)},
        "source": str(data) if isinstance(data, str | os.PathLike) else "a list in memory",
        "eval_data": [str(file) for file in _files(eval_data)],
        "seed": loop_settings.seed,
        "processes": accelerator.num_processes,
        "versions": _versions(),
        "machine": {"platform": platform.platform(), "python": platform.python_version(), "device": str(accelerator.device)},
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
    thaw_of(trained, loop_settings, count_steps(epoch_size(trained.batches, corpus, train_rows), loop_settings))  # refuses what cannot be
    if accelerator.is_main_process:
        folder.begin(facts, resume)
    accelerator.wait_for_everyone()
    for sentence in trained.remarks() if accelerator.is_main_process else []:
        warnings.warn(sentence, TrainingWarning, stacklevel=2)
    judge = with_own_task(judge, trained, corpus, held_usable, loop_settings.batch_size, loop_settings.seed, tests)
    finished = train_loop(trained, corpus, train_rows, loop_settings, folder, accelerator, judge, resume)

    result = trained.export().eval().requires_grad_()  # what a method kept still may learn in the next run
    result.facts = {"method": method, "settings": facts["settings"], "data": facts["data"], "selected_step": finished.selected_step}
    if accelerator.is_main_process:
        result.save(folder.model)
        if kind.keeps == "best":
            _say_if_no_better(finished.history)
    accelerator.wait_for_everyone()
    chosen_by = next(line["chosen_by"] for line in finished.history if "chosen_by" in line)
    selected_by = f"the best by {chosen_by}" if kind.keeps == "best" else "the last"
    return Run(result, finished.history, finished.selected_step, selected_by, folder.folder, corpus)


def pretrain(
    text: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    tokenizer: str | os.PathLike[str] | None = None,
    eval_data: Files | None = None,
    resume: bool = False,
    **settings: Any,
) -> Encoder | None:
    """A small encoder from nothing but text; None when the minutes given ran out first (resume goes on).

    The vocabulary is learned from the text, or taken from the model that ``tokenizer`` names.
    """
    (chosen,) = resolve(settings, PretrainSettings)
    vocabulary = None if tokenizer is None else load(tokenizer, device="cpu").tokenizer

    def measure(encoder: Encoder) -> dict[str, float]:
        return _spearman(encoder, _files(eval_data))

    return pretrain_encoder([Path(source) for source in text], Path(output), chosen, measure, resume, vocabulary)


def evaluate(
    encoder: Encoder | str | os.PathLike[str],
    suite: str = "sts",
    data_dir: str | os.PathLike[str] | None = None,
    seeds: int | Sequence[int] = 0,
    aggregation: str = "all",
    texts: str | os.PathLike[str] | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Results:
    """Judge an encoder. The only chance in it, the bootstrap's for STS and the samples' for geometry, takes the first of ``seeds``;
    transfer cuts its folds anew for each of them, and gives the mean.

    ``texts`` (a file or a list) is what ``geometry`` looks at, and what ``counterfactual`` makes triples of; without it, the sentences
    of STS-B and of the movie reviews.
    """
    if suite not in SUITES:
        raise InputError(f"No suite is called '{suite}'{nearest(suite, SUITES)}")
    subject = encoder if isinstance(encoder, Encoder) else load(encoder)
    seed = seeds if isinstance(seeds, int) else next(iter(seeds), 0)
    if suite == "geometry":
        run = None if isinstance(encoder, Encoder) else run_of(encoder)
        return evaluate_geometry(subject, texts, data_dir, seed, columns, run)
    if suite == "counterfactual":
        return evaluate_counterfactual(subject, texts, data_dir, seed, columns)
    if texts is not None:
        raise InputError(f"Texts belong to the geometry suite; {suite} has its own. Add --suite geometry, or leave --text out.")
    if suite == "transfer":
        return evaluate_transfer(subject, data_dir, [seeds] if isinstance(seeds, int) else list(seeds) or [0])
    return evaluate_sts(subject, data_dir, aggregation, seed)


def fit_space(
    name: str, encoder: Encoder | str | os.PathLike[str], texts: str | os.PathLike[str] | Sequence[str], **settings: Any
) -> Encoder:
    """A copy of an encoder with a map behind it, fitted to the vectors of ``texts`` (a list, or a file of sentences), without labels.

    ``isotrope methods NAME`` lists the settings. The encoder given stays as it is.
    """
    space = _space(name, settings)
    given = sentences_of(texts) if isinstance(texts, str | os.PathLike) else list(texts)
    return space.fit(encoder if isinstance(encoder, Encoder) else load(encoder), given)


def write_space(
    name: str,
    model: str | os.PathLike[str],
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Fit a space to a file and save the mapped model; of sne and t-sne, which have no map, the table of points. Says what was written."""
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
    found = [record.texts[0] for record in read(text, kind_named("sentences"), columns) if record.texts[0]]
    if not found:
        raise InputError(f"{text}: no sentences found.")
    return found


def search(
    encoder: Encoder | str | os.PathLike[str], texts: str | os.PathLike[str], query: str, top: int = 5, columns: list[str] | None = None
) -> list[Hit]:
    """The sentences of a file that are nearest to a query."""
    subject = encoder if isinstance(encoder, Encoder) else load(encoder)
    return index_file(subject, texts, columns).search([query], top)[0]


def complete(encoder: Encoder | str | os.PathLike[str], concept: str, relation: str, top: int = 5) -> list[Completion]:
    """The concepts that stand in ``relation`` to ``concept``, by a model that ``train("lre", …)`` made; the nearest first."""
    return find_completions(encoder if isinstance(encoder, Encoder) else load(encoder), concept, relation, top)


def paraphrase(
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    model: Encoder | str | os.PathLike[str] = "builtin-base",
    share: float = 0.15,
    seed: int = 42,
    columns: Sequence[str] | None = None,
) -> dict[str, int]:
    """Write pairs for CERT: each sentence of a file, and itself with a ``share`` of its words replaced by the model's language head.

    A sentence without a word that can be replaced is left out. The result says how many pairs were written and how many left out.
    """
    target = Path(output)
    if target.suffix != ".tsv":
        raise InputError(f"{target}: pairs are written as .tsv.")
    encoder = model if isinstance(model, Encoder) else load(model, language_head=True)
    paraphraser = Paraphraser(encoder, share, seed)
    texts = [record.texts[0] for record in read(text, kind_named("sentences"), columns) if record.texts[0]]
    written = 0
    with written_file(target) as temporary, open(temporary, "w", encoding="utf-8") as lines, bar("paraphrasing", len(texts)) as advance:
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
    """What an encoder is judged by: every STS file (STS-B's training part holds pairs of STS12–16), and the transfer sets but their
    training parts."""
    folder = data_folder(data_dir)
    transfer = [file for file in sorted(folder.glob("transfer/*.tsv*")) if ".train." not in file.name]
    return [*sorted(folder.glob("sts/*.tsv*")), *transfer]


def leaks(
    text: Sequence[str | os.PathLike[str]],
    against: Sequence[str | os.PathLike[str]] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
) -> LeakReport:
    """Lines of a training text that hold a sentence of ``against``; by default of the STS, SICK and transfer sets of ``data_dir``."""
    files = [*(against or []), *(protected_files(data_dir) if data_dir is not None or not against else [])]
    return find_leaks(text, protect(files), output)


def make_judge(corpus: Corpus, held_rows: Rows, eval_data: Files | None) -> Judge:
    pairs = natural_pairs(corpus, held_rows)
    files = _files(eval_data)
    if len(pairs[1]) < 2 and not files:
        raise InputError("The texts are too short to hold anything out for choosing a checkpoint; give --eval-data with scored pairs.")

    def judge(encoder: Encoder) -> Judgement:
        measures: dict[str, float] = {}
        chosen_by = "retrieval_mrr"
        if len(pairs[1]) >= 2:
            measures.update(label_free(encoder, pairs))
        if files:
            measures |= _spearman(encoder, files)
            chosen_by = "spearman"
        return Judgement(measures, chosen_by)

    return judge


def _no_judge(encoder: Encoder) -> Judgement:
    """Of a method that scores itself."""
    return Judgement({}, "")


def _files(given: Files | None) -> list[str | os.PathLike[str]]:
    return [] if given is None else [given] if isinstance(given, str | os.PathLike) else list(given)


def _spearman(encoder: Encoder, files: Sequence[str | os.PathLike[str]]) -> dict[str, float]:
    """Spearman × 100, the mean of several files first."""
    found = {Path(file).name.split(".tsv")[0]: 100 * spearman_of_file(encoder, file) for file in files}
    mean = {"spearman": sum(found.values()) / len(found)} if found else {}
    return {**mean, **({f"spearman {name}": value for name, value in found.items()} if len(found) > 1 else {})}


def _check_anew(method: str, model: str | os.PathLike[str] | Encoder, pooling: str | None, settings: LoopSettings) -> None:
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
    tokeniser = encoder.tokeniser
    return open_corpus(data, kinds, tokeniser.flat, tokeniser.fingerprint(), tokeniser.vocabulary, columns, split)


def _fitting(settings: LoopSettings, corpus: Corpus, order: str, processes: int) -> LoopSettings:
    """The default batch size, or a smaller one where the data would not fill two batches."""
    different, what = _different(corpus, order)
    size = min(settings.batch_size, different // 2 // processes * processes)
    if size == settings.batch_size or size < 2:
        return settings
    warnings.warn(
        f"{different:,} different {what} are few: batch_size is {size} instead of {settings.batch_size}.", TrainingWarning, stacklevel=3
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
        return corpus.counts.documents, f"{corpus.kind.whole or 'document'}s"
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

    return {"isotrope": __version__, **{name: version(name) for name in ("torch", "transformers", "accelerate", "numpy")}}
