"""Verbs that train: methods, train, pretrain, compare."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from isotrope.answers import (
    MethodDescription,
)
from isotrope.api.arguments import Place, check_data, check_eval_data, check_files, check_output, holds_images, places
from isotrope.api.encoder_verbs import load
from isotrope.catalogue import all_cards, check_trainable, describe_settings
from isotrope.data.record_types import RECORD_TYPES
from isotrope.data.tables import check_file
from isotrope.errors import InputError, nearest

if TYPE_CHECKING:
    from isotrope.comparison.comparison_table import Comparison
    from isotrope.encoders.encoder import Encoder
    from isotrope.methods.frame.method import Card
    from isotrope.training.pretrain_run import Pretrained
    from isotrope.training.run import Run


@overload
def methods(name: None = None, needs: str | None = None, family: str | None = None) -> list[Card]: ...
@overload
def methods(name: str, needs: str | None = None, family: str | None = None) -> MethodDescription: ...
def methods(
    name: str | None = None, needs: str | None = None, family: str | None = None
) -> list[Card] | MethodDescription:
    """The cards of all methods, spaces and tactics, or one of them by ``name`` with its settings.

    ``needs`` keeps those that can train on a record type (sentences, pairs, …), ``family`` those of one family.
    """
    cards = all_cards()
    if name is not None:
        card = next((card for card in cards if card.name == name), None)
        if card is None:
            raise InputError(f"Unknown method '{name}'{nearest(name, [card.name for card in cards])}")
        return MethodDescription(card, describe_settings(name))
    types = {
        card.name: {card.needs, *getattr(card, "accepts", ()), getattr(card, "images", None) or card.needs}
        for card in cards
    }
    record_types, families = set().union(*types.values()), {getattr(card, "family", "") for card in cards}
    if needs is not None and needs not in record_types:
        raise InputError(f"No method needs '{needs}'{nearest(needs, record_types)}", setting="needs")
    if family is not None and family not in families:
        raise InputError(f"Unknown family '{family}'{nearest(family, families - {''})}", setting="family")
    wanted = [card for card in cards if needs is None or needs in types[card.name]]
    return [card for card in wanted if family in (None, getattr(card, "family", ""))]


def train(
    method: str | None = None,
    data: Place | Sequence[Any] | None = None,
    model: Place | Encoder = "builtin-base",
    output: Place | None = None,
    *,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    split: bool = False,
    eval_data: Place | Sequence[Place] | None = None,
    resume: bool = False,
    final_table: bool = True,
    sources: Sequence[Mapping[str, Any]] | None = None,
    **settings: Any,
) -> Run:
    """Train an encoder with a method on a file of text (or a list of records), or with ``sources`` on several.

    Without a ``method``, ``builtin`` (or another finished encoder, named as ``model``) is adapted to the data: by pairs
    or triples where there are some, else by plain sentences. That is the advised way to begin.
    ``data`` may be images: a folder, an .npz, a parquet or a list of arrays; ``model`` is then a network, timm:NAME.

    ``settings`` are those of the method and of the loop, by name; ``isotrope.methods(method)`` lists them. A checkpoint
    is selected by its Spearman correlation on ``eval_data`` (a file of scored pairs, or the mean over several), by its
    MRR where ``eval_data`` has queries and passages, otherwise without labels: by how well held-out texts retrieve
    their natural partner. The start is a candidate too: where nothing is better, it is kept, and that is said.
    ``final_table`` measures at the end, on held-out text, the run next to its start, builtin as it is and TF-IDF, and
    warns where training did not pay: ``Run.worth``.

    ``sources`` takes the place of ``method`` and ``data``: a list of mappings with ``data``, ``method`` and, where they
    are wanted, ``name``, ``share``, ``prompt``, ``columns``, ``split`` and the method's ``settings``. A batch is of one
    source, and sources take turns by share. ``settings`` are then those of the loop.
    """
    if sources is not None:
        _refuse_one_source(method, data, columns, split)
        return _train_sources(
            sources,
            model,
            output,
            pooling=pooling,
            eval_data=eval_data,
            resume=resume,
            final_table=final_table,
            **settings,
        )
    if data is None:
        raise InputError("train needs data, a file such as sentences.txt; or sources: a recipe with a list of them.")
    if isinstance(data, str | os.PathLike):
        check_data(data)
    if isinstance(data, Iterator):  # it is read more than once
        data = list(data)
    check_eval_data(eval_data)
    check_output(output, resume)
    if method == "head":
        _refuse_loop(split, eval_data, resume)
        return _train_head(data, model, output, pooling, columns, settings)
    if method is None:
        if isinstance(data, str | os.PathLike) and holds_images(data):
            raise InputError(f"{data} holds images; name the method: simclr, moco, or supcon with labels.", "method")
        from isotrope.data.sources import fits
        from isotrope.progress import say
        from isotrope.training.advice import advise

        method, model = advise(data, columns, model)
        if columns is None and isinstance(data, str | os.PathLike) and fits(data, "labelled"):
            say("its labels are not used: `train head` fits a classifier to them, `train supcon` an encoder")
    check_trainable(method)
    from isotrope.evaluation.checkpoint_judge import make_judge
    from isotrope.evaluation.worth import with_worth
    from isotrope.training.plan import make_plan
    from isotrope.training.run import run_plan

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
        final_table=final_table,
        **settings,
    )
    return with_worth(plan, run_plan(plan, make_judge))


def _refuse_loop(split: bool, eval_data: Any, resume: bool) -> None:
    """What only a run with updates takes."""
    named = [name for name, given in (("split", split), ("eval_data", eval_data), ("resume", resume)) if given]
    if named:
        raise InputError(f"A head is fitted at once, without updates; leave {named[0]} out.", setting=named[0])


def _train_head(
    data: Place | Sequence[Any],
    model: Place | Encoder,
    output: Place | None,
    pooling: str | None,
    columns: Sequence[str] | None,
    given: Mapping[str, Any],
) -> Run:
    """``train`` of a classifier on frozen vectors; from the default model, builtin is taken."""
    from isotrope.heads.head_settings import HeadSettings
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.training.head_run import run_head

    (chosen,) = resolve(given, HeadSettings)
    check(chosen)
    return run_head(data, model, output, chosen, pooling, columns)


def _refuse_one_source(method: str | None, data: Any, columns: Sequence[str] | None, split: bool) -> None:
    """What each source says for itself."""
    given = {"method": method is not None, "data": data is not None, "columns": columns is not None, "split": split}
    named = [name for name, there in given.items() if there]
    if named:
        raise InputError(f"A run of sources takes {' and '.join(named)} from each of them; leave {named[0]} out.")


def _train_sources(
    sources: Sequence[Mapping[str, Any]], model: Place | Encoder, output: Place | None, **options: Any
) -> Run:
    """``train`` with several data sets in one run."""
    from isotrope.training.source_list import about, read_sources

    for source in read_sources(sources):
        with about(source.name):
            if isinstance(source.data, str | os.PathLike):
                check_file(source.data)
    check_eval_data(options["eval_data"])
    check_output(output, options["resume"])
    for source in read_sources(sources):
        with about(source.name):
            check_trainable(source.method)
    from isotrope.evaluation.checkpoint_judge import make_judge
    from isotrope.evaluation.worth import with_worth_of_sources
    from isotrope.training.source_plan import plan_sources
    from isotrope.training.source_run import run_sources

    plan = plan_sources(sources, model, output, **options)
    return with_worth_of_sources(plan, run_sources(plan, make_judge))


def pretrain(
    text: Place | Sequence[Place],
    output: Place,
    *,
    model: Place | None = None,
    tokenizer: Place | None = None,
    eval_data: Place | Sequence[Place] | None = None,
    resume: bool = False,
    **settings: Any,
) -> Pretrained:
    """Initialise a small encoder from scratch and pre-train it on text files; or go on with a ``model`` on new text.

    The vocabulary is learned from the text, or taken from the model that ``tokenizer`` names. A ``model`` brings its
    own vocabulary and shape. ``text`` may be a folder that an earlier run packed into the cache, on any machine.
    ``eval_data`` (scored pairs) is measured along the way and changes nothing.
    """
    if model is not None and tokenizer is not None:
        raise InputError("A model brings its own vocabulary; give model or tokenizer, not both.")
    from isotrope.data.packing import is_packed

    sources = [Path(source) for source in places(text)]
    for source in () if is_packed(sources) else sources:
        check_file(source)
    files = check_files(eval_data)
    check_output(output, resume)
    from isotrope.evaluation.checkpoint_judge import eval_measures, read_eval_data
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.training.pretrain_run import open_given, run_pretrain, shaped_by
    from isotrope.training.pretrain_settings import PretrainSettings, with_steps

    (chosen,) = resolve(with_steps(settings), PretrainSettings)
    check(chosen)
    start = None if model is None else open_given(model)
    if start is not None:
        chosen = shaped_by(start, chosen, settings)
    given = read_eval_data(files)
    vocabulary = None if tokenizer is None else load(tokenizer, device="cpu").tokenizer

    def measure(encoder: Encoder) -> dict[str, float]:
        return eval_measures(encoder, given)

    read = [Path(file) for file in files]
    return run_pretrain(sources, Path(output), chosen, measure, resume, vocabulary, read, start)


def compare(
    data: Place | Sequence[Place] | Mapping[str, Place],
    methods: str | Sequence[str] = (),
    output: Place | None = None,
    *,
    model: Place = "builtin-base",
    pooling: str | None = None,
    seeds: int = 3,
    eval_data: Place | Sequence[Place] | None = None,
    data_dir: Place | None = None,
    aggregation: str = "all",
    suite: str | Sequence[str] | None = None,
    parallel: int = 1,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    budget: str | float | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    search: Mapping[str, str | Sequence[Any]] | None = None,
    trials: int = 20,
    sampler: str = "auto",
    **settings: Any,
) -> Comparison:
    """Train each method with each random seed from one start, equally long; select and judge all encoders alike.

    ``data``: a file, or several of different record types, of which each method takes the first that it can use (a
    mapping from record type to file says which is which). ``methods``: names, or LABEL=NAME for a method that is
    compared twice. ``suite``: sts, transfer, retrieval, answers, label-free or own (each method's own task), or
    several; by default STS where ``data_dir`` (or ISOTROPE_DATA) is given, else label-free; runs that ended under other
    suites are judged again, not trained again. ``own``: settings of one method, by label;
    ``settings`` are those of the loop, the same for all; ``max_steps`` (200), ``epochs`` or ``budget`` ("10m": seconds
    of training) says how long a run is. ``vary``: a row for each value of a setting, of each method that has it.
    ``search``: LOW:HIGH, LOW:HIGH:log or words joined by | for each setting; ``trials`` of each method, with a seed of
    their own and scored as checkpoints are, choose the settings that are compared (``sampler``: random, optuna, or
    auto, which is optuna where it is installed). The same call continues where an earlier one with the same
    ``output`` was stopped. The folder of a comparison, or its ``comparison.json``, given as ``data`` without
    ``methods``, is read back.
    """
    names = [name for name in methods.split(",") if name] if isinstance(methods, str) else list(methods)
    sources = [data] if isinstance(data, str | os.PathLike) else list(data)
    if names and not isinstance(data, Mapping):
        for source in sources:
            prefix, equals, path = str(source).partition("=")
            check_file(path if equals and prefix in RECORD_TYPES else source)
    check_files(eval_data)
    from isotrope.comparison.comparison_table import FILE, Comparison

    if not names and len(sources) == 1:
        named, inside = Path(sources[0]), Path(sources[0]) / FILE
        if named.name == FILE or inside.is_file():
            return Comparison.read(inside if named.is_dir() else named)
    from isotrope.comparison.compare import run_comparison
    from isotrope.comparison.line_up import plan_comparison

    plan = plan_comparison(
        data,
        names,
        output,
        model=model,
        pooling=pooling,
        seeds=seeds,
        eval_data=eval_data,
        data_dir=data_dir,
        aggregation=aggregation,
        suite=suite,
        parallel=parallel,
        own=own,
        budget=budget,
        vary=vary,
        search=search,
        trials=trials,
        sampler=sampler,
        **settings,
    )
    return run_comparison(plan)
