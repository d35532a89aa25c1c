"""Every public verb: each is a short function that joins rooms, and a command of the same name prints what it returns.

A room is imported inside the verb that needs it. A call that cannot work is therefore refused before torch is imported
wherever names and files alone say so: a missing data file, an unknown suite, an output in the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from isotrope.answers import (
    DistilledModel,
    EncodedFile,
    ExportedModel,
    FittedSpace,
    MethodDescription,
    ParaphrasedFile,
)
from isotrope.catalogue import all_cards, check_trainable, describe_settings, usable_record_types
from isotrope.data.record_types import RECORD_TYPES
from isotrope.data.sentence_files import sentences_of
from isotrope.data.tables import check_file, check_readable
from isotrope.errors import InputError, check_between, check_seed, nearest
from isotrope.files import check_overwrite, check_run_folder
from isotrope.progress import bar, say

if TYPE_CHECKING:
    import torch

    from isotrope.comparison.comparison_table import Comparison
    from isotrope.data.checking.text_check import TextCheck
    from isotrope.data.leaks import LeakReport
    from isotrope.data.link_extraction import ExtractedLinks
    from isotrope.encoders.completion import Completion
    from isotrope.encoders.encoder import Encoder
    from isotrope.encoders.hub_upload import PushedModel
    from isotrope.evaluation.results import Results
    from isotrope.heads.predictions import Predictions
    from isotrope.machine import Machine
    from isotrope.methods.frame.method import Card
    from isotrope.report.build import Report
    from isotrope.report.image_page import ImageReport
    from isotrope.search.hits import Hit
    from isotrope.search.index_report import Indexed
    from isotrope.search.mining import Mined
    from isotrope.search.opened_index import SearchIndex
    from isotrope.spaces.space import Space
    from isotrope.training.pretrain_run import Pretrained
    from isotrope.training.run import Run

Place = str | os.PathLike[str]
STUDENTS = ("static",)


# ---- methods


@overload
def methods(name: None = None, needs: str | None = None, family: str | None = None) -> list[Card]: ...
@overload
def methods(name: str, needs: str | None = None, family: str | None = None) -> MethodDescription: ...
def methods(
    name: str | None = None, needs: str | None = None, family: str | None = None
) -> list[Card] | MethodDescription:
    """The cards of all methods, spaces and tactics, or one of them by ``name`` with its settings.

    ``needs`` keeps those that train on a record type (sentences, pairs, …), ``family`` those of one family.
    """
    cards = all_cards()
    if name is not None:
        card = next((card for card in cards if card.name == name), None)
        if card is None:
            raise InputError(f"Unknown method '{name}'{nearest(name, [card.name for card in cards])}")
        return MethodDescription(card, describe_settings(name))
    types = {card.name: {card.needs, getattr(card, "images", None) or card.needs} for card in cards}
    record_types, families = set().union(*types.values()), {getattr(card, "family", "") for card in cards}
    if needs is not None and needs not in record_types:
        raise InputError(f"No method needs '{needs}'{nearest(needs, record_types)}", setting="needs")
    if family is not None and family not in families:
        raise InputError(f"Unknown family '{family}'{nearest(family, families - {''})}", setting="family")
    wanted = [card for card in cards if needs is None or needs in types[card.name]]
    return [card for card in wanted if family in (None, getattr(card, "family", ""))]


# ---- training


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
        raise InputError("train needs data, or sources: a recipe with a list of them.")
    if isinstance(data, str | os.PathLike):
        _check_data(data)
    _check_eval_data(eval_data)
    _check_output(output, resume)
    if method == "head":
        _refuse_loop(split, eval_data, resume)
        return _train_head(data, model, output, pooling, columns, settings)
    if method is None:
        if isinstance(data, str | os.PathLike) and _holds_images(data):
            raise InputError(f"{data} holds images; name the method: simclr, moco, or supcon with labels.", "method")
        from isotrope.training.advice import advise

        method, model = advise(data, columns, model)
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
    _check_eval_data(options["eval_data"])
    _check_output(output, options["resume"])
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
    text: Sequence[Place],
    output: Place,
    *,
    tokenizer: Place | None = None,
    eval_data: Place | Sequence[Place] | None = None,
    resume: bool = False,
    **settings: Any,
) -> Pretrained:
    """Initialise a small encoder from scratch and pre-train it on text files.

    The vocabulary is learned from the text, or taken from the model that ``tokenizer`` names. ``eval_data`` (scored
    pairs) is measured along the way and changes nothing.
    """
    for source in text:
        check_file(source)
    files = _check_files(eval_data)
    _check_output(output, resume)
    from isotrope.evaluation.checkpoint_judge import eval_measures, read_eval_data
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.training.pretrain_run import run_pretrain
    from isotrope.training.pretrain_settings import PretrainSettings

    (chosen,) = resolve(settings, PretrainSettings)
    check(chosen)
    given = read_eval_data(files)
    vocabulary = None if tokenizer is None else load(tokenizer, device="cpu").tokenizer

    def measure(encoder: Encoder) -> dict[str, float]:
        return eval_measures(encoder, given)

    sources = [Path(source) for source in text]
    return run_pretrain(sources, Path(output), chosen, measure, resume, vocabulary, [Path(file) for file in files])


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
    ``output`` was stopped. The ``comparison.json`` of a finished comparison, given as ``data`` without ``methods``, is
    read back.
    """
    names = [name for name in methods.split(",") if name] if isinstance(methods, str) else list(methods)
    sources = [data] if isinstance(data, str | os.PathLike) else list(data)
    if names and not isinstance(data, Mapping):
        for source in sources:
            prefix, equals, path = str(source).partition("=")
            check_file(path if equals and prefix in RECORD_TYPES else source)
    _check_files(eval_data)
    from isotrope.comparison.comparison_table import FILE, Comparison

    if not names and len(sources) == 1 and Path(sources[0]).name == FILE:
        return Comparison.read(sources[0])
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


# ---- encoders


def load(
    name_or_path: Place = "builtin",
    pooling: str | None = None,
    device: str | torch.device | None = None,
    language_head: bool = False,
    trust_remote_code: Place | None = None,
    truncate_dim: int | None = None,
) -> Encoder:
    """An encoder ready to use: "builtin", "builtin-base", "builtin-static", a folder or a hub id.

    ``pooling`` replaces the one stored with the model; a plain Hugging Face folder, which stores none, gets mean
    pooling. ``language_head`` keeps the masked-language head, for methods that train it. Code in a model's folder is
    never run, unless ``trust_remote_code`` names that folder. ``truncate_dim`` keeps the leading dimensions of its
    vectors.
    """
    from isotrope.encoders.loading import load as load_encoder

    return load_encoder(name_or_path, pooling, device, language_head, trust_remote_code, truncate_dim)


def encode(
    encoder: Encoder | Place,
    text: Place,
    output: Place | None = None,
    columns: Sequence[str] | None = None,
    normalize: bool = False,
    precision: str = "float32",
    ranges: Place | None = None,
    truncate_dim: int | None = None,
    *,
    shards: Place | None = None,
    shard_size: int = 16_384,
    ray: bool = False,
) -> EncodedFile:
    """Write the vectors of a file's sentences, one row each, as .npy; empty lines are left out, and their numbers are
    written as ``NAME.left_out.txt``.

    The file is streamed: memory does not grow with it. ``precision`` is float32, int8, uint8, binary or ubinary. int8
    needs the range of each dimension: that of these vectors, which is written as ``NAME.ranges.npy``, or the one of
    such a file, given as ``ranges``. ``truncate_dim`` keeps the leading dimensions. For sentences in memory use
    ``Encoder.encode`` and ``isotrope.encoders.precision.quantize``.

    ``shards`` names a folder in which any number of processes and machines share the work: start the same call in each
    of them. A shard holds ``shard_size`` lines and is written whole, with a checksum; a call after a crash makes what
    is missing or damaged. ``output`` may be left out then: the shards are the answer. ``ray`` spreads the shards over
    a Ray cluster (extra ``ray``).

    ``text`` may be images (a folder, an .npz, a parquet, a file) for a model that reads images; ``NAME.names.txt`` then
    has the name of each row's image.
    """
    target = _vectors_target(output, shards, ray)
    check_overwrite(target, text, encoder)
    check_between("shard_size", shard_size, 1, 10_000_000)
    from isotrope.encoders.precision import check_precision

    check_precision(precision)
    known = None if ranges is None else _ranges(ranges, precision)
    if _holds_images(text):
        if precision != "float32" or columns is not None or target is None or shards is not None:
            raise InputError(
                f"{text}: vectors of images are float32 in one file; leave precision, columns and shards out."
            )
        return _encode_images(encoder, text, target, normalize, truncate_dim)
    from isotrope.data.left_out_lines import blank_lines, write_left_out
    from isotrope.encoders.cut_texts import counting_cut
    from isotrope.shards.streamed_encoding import encode_stream, refuse_no_sentence
    from isotrope.shards.text_blocks import TextBlocks
    from isotrope.shards.vector_form import VectorForm

    blocks, form = TextBlocks(text, columns, shard_size), VectorForm(normalize, precision, known)
    if shards is None:
        assert target is not None
        with counting_cut() as counted:
            found = encode_stream(lambda: _loaded(encoder, truncate_dim=truncate_dim), blocks, target, form)
        counted.say()
        aside = write_left_out(target, blank_lines(text, columns) if found.empty else ())
        return EncodedFile(target, found.rows, found.dimension, found.empty, precision, counted.cut, aside)
    if form.needs_ranges:
        raise InputError(
            f"Shards in {precision} need ranges: encode a sample of the text with precision {precision}, and give the "
            ".ranges.npy that is written next to it.",
            setting="ranges",
        )
    refuse_no_sentence(blocks)
    if ray:
        from isotrope.shards.ray_shards import encode_on_ray

        if not isinstance(encoder, str | os.PathLike):
            raise InputError("ray loads the encoder in every process; give its name or folder.", setting="ray")
        whole, made = encode_on_ray(str(encoder), truncate_dim, blocks, Path(shards), form, target)
    else:
        from isotrope.shards.shard_work import encode_shards

        whole, made = encode_shards(_loaded(encoder, truncate_dim=truncate_dim), blocks, Path(shards), form, target)
    whole.say_cut()
    aside = None if target is None else write_left_out(target, blank_lines(text, columns) if whole.empty else ())
    place, facts = target or Path(shards), (whole.empty, precision, whole.cut, aside, whole.shards, made)
    return EncodedFile(place, whole.rows, whole.store.plan.dimension, *facts)


def export(
    encoder: Encoder | Place,
    output: Place,
    int8: bool = False,
    text: Place | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> ExportedModel:
    """Write the whole model, pooling and modules included, as one ONNX graph in a new folder that ``load`` opens.

    ``int8`` quantises the weights. The drift of its vectors is measured on ``text``, or on sentences of Python's own
    documentation, and stored in the folder. Needs the extra ``onnx``.
    """
    folder = Path(output)
    check_run_folder(folder, resume=False)
    texts = None if text is None else _sentences(text, columns)
    from isotrope.encoders.onnx_export import FLOAT32, INT8
    from isotrope.encoders.onnx_export import export as write_export

    drift = write_export(_loaded(encoder), folder, int8, texts)
    size = (folder / (INT8 if int8 else FLOAT32)).stat().st_size
    return ExportedModel(folder, "int8" if int8 else "float32", round(size / 1e6, 1), drift.to_dict())


def index(
    model: Encoder | Place,
    text: Place | Sequence[Place] = (),
    output: Place | None = None,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    id_column: str | None = None,
    precision: str = "float32",
    dimensions: int | None = None,
    update: bool = False,
    add: bool = False,
    delete: str | None = None,
) -> Indexed:
    """Build an index of text files that ``search`` finds rows in, by vectors and by words.

    ``output``: a folder (exact search, memory-mapped), ``milvus:FILE`` (Milvus Lite) or ``http://HOST:PORT`` (a Milvus
    server). ``columns`` hold the text (several are joined); the other columns of a table are kept for filters and hits,
    or those that ``keep`` names. ``precision`` int8 or binary searches by codes and re-scores the best by the float
    vectors; ``dimensions`` keeps the leading ones; the answer says what either costs. A build that was stopped goes on
    by the same call. Over an index that is there: ``update`` makes it one of exactly this text and encodes only what
    is new, ``add`` adds rows (one whose ``id_column`` is known replaces it), ``delete`` takes out the rows of a filter
    such as "year < 2000", and then ``text`` may be empty.
    """
    if output is None:
        raise InputError("index needs a place to write to: a folder, milvus:FILE or http://HOST:PORT.", "output")
    files = [text] if isinstance(text, str | os.PathLike) else list(text)
    for file in files:
        check_file(file)
    from isotrope.search.index_making import make_index

    return make_index(
        model,
        files,
        output,
        columns=columns,
        keep=keep,
        id_column=id_column,
        precision=precision,
        dimensions=dimensions,
        update=update,
        add=add,
        delete=delete,
    )


def open_index(place: Place, encoder: Encoder | None = None, *, stale: bool = False) -> SearchIndex:
    """Open an index for many queries; the model is loaded at the first one that needs it.

    ``encoder``: the model that made it, where it is in memory already. ``stale``: open it although its text changed.
    """
    from isotrope.search.opened_index import open_index as opened

    return opened(place, encoder, stale=stale)


def search(
    encoder: Encoder | Place,
    *words: Any,
    top: int = 10,
    mode: str = "hybrid",
    where: str | None = None,
    columns: Sequence[str] | None = None,
    truncate_dim: int | None = None,
    stale: bool = False,
) -> list[Hit] | list[list[Hit]]:
    """The ``top`` rows that answer a query: ``search(index, query)``, or ``search(model, file, query)``.

    The first is an index that ``index`` made. The second keeps an index next to the file, one for each model; a file
    that has changed is indexed again, and only its new lines are encoded. A list of queries, or several, give a list of
    hits for each. ``mode`` is hybrid, dense or lexical; ``where`` filters by kept columns, such as "year > 2020".
    ``columns`` and ``truncate_dim`` belong to the second form; ``stale`` to the first: search it although its text has
    changed. Images are searched by the file of one, with a model that reads images.
    """
    if len(words) == 2 and isinstance(words[0], str | os.PathLike) and _holds_images(words[0]):
        from isotrope.search.picture_search import search_images

        return search_images(_loaded(encoder, truncate_dim=truncate_dim), words[0], words[1], top)
    from isotrope.search.querying import answer

    return answer(
        encoder, words, top=top, mode=mode, where=where, columns=columns, truncate_dim=truncate_dim, stale=stale
    )


def complete(encoder: Encoder | Place, concept: str, relation: str, top: int = 5) -> list[Completion]:
    """The ``top`` concepts that stand in ``relation`` to ``concept``, the nearest first.

    The encoder is one that the method lre trained; no other knows relations.
    """
    from isotrope.encoders.completion import complete as find_completions

    return find_completions(_loaded(encoder), concept, relation, top)


@overload
def fit_space(
    name: str,
    encoder: Encoder | Place,
    texts: Place | Sequence[str],
    output: None = None,
    *,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> Encoder: ...
@overload
def fit_space(
    name: str,
    encoder: Encoder | Place,
    texts: Place | Sequence[str],
    output: Place,
    *,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> FittedSpace: ...
def fit_space(
    name: str,
    encoder: Encoder | Place,
    texts: Place | Sequence[str],
    output: Place | None = None,
    *,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> Encoder | FittedSpace:
    """A copy of an encoder followed by a map, fitted without labels to the vectors of ``texts`` (a list or a file).

    ``isotrope.methods(name)`` lists the settings. The encoder given stays as it is. With ``output`` the mapped model is
    saved there, and the result says what was written. sne and t-sne have no map: they need an ``output``, a .tsv for
    their points.
    """
    if isinstance(texts, str | os.PathLike):
        check_file(texts)
    space = _space(name, settings)
    from isotrope.encoders.saving import check_new_folder
    from isotrope.spaces.flat_maps import Map, check_table, write_points

    if output is None:
        return space.fit(_loaded(encoder, pooling), _sentences(texts, columns))
    target = check_table(output) if isinstance(space, Map) else check_new_folder(output)
    check_overwrite(target, texts, encoder)
    found = _sentences(texts, columns)
    subject = _loaded(encoder, pooling)
    if isinstance(space, Map):
        write_points(target, found, space.points(subject, found))
        return FittedSpace(name, target, len(found), dimension=2)
    mapped = space.fit(subject, found)
    mapped.save(target)
    return FittedSpace(name, target, len(found), mapped.dimension, mapped)


@overload
def distil(
    encoder: Encoder | Place,
    texts: Place | Sequence[str],
    output: None = None,
    to: str = "static",
    *,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> Encoder: ...
@overload
def distil(
    encoder: Encoder | Place,
    texts: Place | Sequence[str],
    output: Place,
    to: str = "static",
    *,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> DistilledModel: ...
def distil(
    encoder: Encoder | Place,
    texts: Place | Sequence[str],
    output: Place | None = None,
    to: str = "static",
    *,
    columns: Sequence[str] | None = None,
    **settings: Any,
) -> Encoder | DistilledModel:
    """A small student of an encoder, learned from sentences without labels (a list or a file).

    ``to``: "static" is a table of token vectors, and a sentence is the mean of its rows: many times faster, and blind
    to word order. For a student with layers train the method distil. With ``output`` the student is saved there, as
    sentence-transformers' StaticEmbedding, and the result says what was written.
    """
    if to not in STUDENTS:
        raise InputError(f"to is {' or '.join(STUDENTS)}; '{to}' was given.", setting="to")
    if isinstance(texts, str | os.PathLike):
        check_file(texts)
    from isotrope.encoders.saving import check_target
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.training.static_student import StaticSettings, distil_static

    (chosen,) = resolve(settings, StaticSettings)
    check(chosen)
    target = None if output is None else check_target(output)
    found = _sentences(texts, columns)
    student = distil_static(_loaded(encoder), found, chosen)
    if target is None:
        return student
    student.save(target)
    return DistilledModel(to, target, len(found), len(student.tokenizer), student.dimension, student)


# ---- serving


def serve(
    models: Place | Encoder | Sequence[Place | Encoder],
    index: Place | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    api_key_file: Place | None = None,
    *,
    batch_tokens: int | None = None,
    max_inputs: int = 2048,
    max_body: int = 8_000_000,
    max_waiting: int = 512,
) -> None:
    """Answer HTTP requests with one or more models, until Ctrl-C or SIGTERM; needs the extra ``serve``.

    ``models``: places or encoders, each under the name of its folder; NAME=MODEL gives it another. ``index`` is what
    `isotrope index` made with one of them. ``port`` 0 takes any free one. ``api_key_file`` holds the key that clients
    must send. ``batch_tokens`` is how many tokens one forward joins, by default 1,024 on a CPU and 65,536 on a GPU.
    ``max_inputs`` (texts of a request), ``max_body`` (its bytes) and ``max_waiting`` (requests) are limits.
    """
    for name, value in {"max_inputs": max_inputs, "max_body": max_body, "max_waiting": max_waiting}.items():
        check_between(name, value, 1, 1_000_000_000)
    check_between("batch_tokens", 1 if batch_tokens is None else batch_tokens, 1, 1_000_000_000)
    from isotrope.serving.access_key import read_key
    from isotrope.serving.listening_port import bind

    key = None if api_key_file is None else read_key(api_key_file)
    with bind(host, port) as listening:
        try:
            from isotrope.serving.gate import warn_open
            from isotrope.serving.launch import run
            from isotrope.serving.opening_service import open_service
        except ModuleNotFoundError as error:
            raise InputError(f"serve needs the package {error.name}: pip install 'isotrope[serve]'.") from error
        alone = isinstance(models, str | os.PathLike) or hasattr(models, "encode")
        given: Sequence[Any] = [models] if alone else list(models)  # type: ignore[arg-type]
        limits = {"inputs": max_inputs, "body_bytes": max_body, "waiting_requests": max_waiting}
        service = open_service(given, index, batch_tokens, limits)
        warn_open(host, key)
        run(service, listening, key, host)


# ---- predicting and sharing


def predict(
    encoder: Encoder | Place,
    text: Place,
    columns: Sequence[str] | None = None,
    top: int = 1,
    output: Place | None = None,
) -> Predictions:
    """The class and its probability of each text of a file, by the classifier that the model keeps.

    A ``text`` of several words that is no file is classified itself. ``top`` classes of each text are named. All
    predictions are written to ``output``, a .tsv or .jsonl file. For texts in memory use ``Encoder.predict``.
    """
    alone = isinstance(text, str) and " " in text.strip() and not Path(text).exists()
    if not alone:
        check_file(text)
    from dataclasses import replace

    from isotrope.data.readers import read
    from isotrope.data.record_types import record_type_named
    from isotrope.encoders.cut_texts import CutTexts
    from isotrope.encoders.prediction import classifier_of
    from isotrope.heads.predictions import check_written, predict_rows

    target = None if output is None else check_written(Path(output))
    check_overwrite(target, text, encoder)
    subject = _loaded(encoder)
    pairs = classifier_of(subject).inputs == 2
    if alone and pairs:
        raise InputError("This model classifies pairs; give a file with two columns.", setting="text")
    records = [] if alone else list(read(text, record_type_named("pairs" if pairs else "sentences"), columns))
    full = [record for record in records if all(record.texts)]
    rows, lines = ([(str(text),)], [1]) if alone else ([one.texts for one in full], [one.line for one in full])
    if not rows:
        raise InputError(f"{text}: no sentences found.")
    found = predict_rows(subject, rows, lines, top)
    found = replace(found, empty_left_out=len(records) - len(full))
    CutTexts(len(rows), found.cut, subject.max_length).say()
    if target is not None:
        found.write(target)
    return found


def push(
    folder: Place,
    repo: str,
    private: bool = True,
    license: str | None = None,
    revision: str | None = None,
    message: str = "Upload a sentence encoder",
) -> PushedModel:
    """Send a saved model (or a run's) with its card to ``repo`` on a hub, in one commit; no other file travels.

    The token is huggingface_hub's own: `hf auth login`, or HF_TOKEN. ``license`` is written into the card's header.
    """
    from isotrope.encoders.hub_upload import push_folder

    return push_folder(folder, repo, private, license, revision, message)


# ---- judging


def evaluate(
    encoder: Encoder | Place | Sequence[Encoder | Place],
    suite: str | Sequence[str] = "sts",
    data_dir: Place | None = None,
    seeds: int | Sequence[int] = 0,
    aggregation: str = "all",
    texts: Place | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    pooling: str | None = None,
    test: Place | None = None,
    baselines: bool = True,
    against: Encoder | Place | Sequence[Encoder | Place | Sequence[Encoder | Place]] = (),
    leaks: bool = True,
    protocol: str | None = None,
    tasks: Sequence[str] | None = None,
    lang: str | None = None,
    truncate_dim: int | None = None,
) -> Results:
    """Judge an encoder (or a run folder, or several runs) by a suite, by several ("sts,transfer"), or by "all".

    ``seeds`` are random seeds: transfer draws its folds again for each of them and gives the mean; bootstraps and
    samples of the other suites take the first. ``texts`` (a file or a list) is what geometry describes and what
    counterfactual makes triples of, by default the sentences of STS-B and of the movie reviews; the labelled text of
    linear, whose test part is the file ``test``, the rows of split test, or a part drawn at random; and the questions
    with candidates of answers. ``aggregation`` (all, mean or wmean) is how STS12–16 join their subsets. ``baselines``:
    TF-IDF, BM25 and random vectors, computed on the same texts, stand in the table. ``protocol`` is the
    classifier of transfer and probing, ``tasks`` some of their tasks, ``lang`` another language of sts.
    ``truncate_dim`` keeps the leading dimensions of all vectors.

    ``against``: other encoders; for each there is a verdict, by a paired bootstrap of the test items. Several runs of
    one method, given as a folder of runs, as a list, or joined by commas, stand for one encoder, and the verdict then
    covers their random seeds. ``leaks``: mark the scores whose test items stand in the training text of a run.
    """
    drawn = (seeds,) if isinstance(seeds, int) else tuple(seeds) or (0,)
    for seed in drawn:
        check_seed(seed, "seeds")
    for file in (texts, test):
        if isinstance(file, str | os.PathLike):
            _check_data(file)
    from isotrope.evaluation.judging import judge_models
    from isotrope.evaluation.suite import Options

    alone = isinstance(against, str | os.PathLike) or hasattr(against, "encode")
    others: Sequence[Any] = [against] if alone else list(against)  # type: ignore[arg-type]
    some = None if tasks is None else tuple(tasks)
    suited = {"test": test, "baselines": baselines, "protocol": protocol, "tasks": some, "lang": lang}
    options = Options(data_dir, texts, columns, aggregation, drawn, **suited)  # type: ignore[arg-type]
    return judge_models(encoder, suite, options, others, pooling, leaks, truncate_dim)


def report(
    *subjects: Place | Encoder,
    output: Place | None = None,
    text: Place | None = None,
    data_dir: Place | None = None,
    format: str | None = None,
    figure: str | None = None,
    sentences: int = 1000,
    queries: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    seed: int = 42,
) -> Report | ImageReport:
    """Show runs and models next to each other, on one page or in a single figure of it.

    ``text``: the sentences to look at, by default those of the first run. ``data_dir`` (or ISOTROPE_DATA) brings STS;
    without it the score is label-free. ``sentences``: how many are sampled for the map. ``queries``: sentences whose
    neighbours are shown. Where ``text`` holds images, the page has maps of thumbnails and neighbours of some of them.
    """
    if text is not None:
        _check_data(text)
    check_seed(seed)
    check_between("sentences", sentences, 10, 1_000_000)
    check_overwrite(output, text, *subjects)
    if text is not None and _holds_images(text):
        from isotrope.report.image_page import make_image_report

        return make_image_report(*subjects, output=output, images=text, count=sentences, seed=seed)
    from isotrope.report.build import make_report

    return make_report(
        *subjects,
        output=output,
        text=text,
        data_dir=data_dir,
        format=format,
        figure=figure,
        sentences=sentences,
        queries=queries,
        columns=columns,
        seed=seed,
    )


def doctor() -> Machine:
    """What this machine can do: threads, torch, bfloat16 (tried in a subprocess), built-in models, offline or not."""
    from isotrope.machine import examine

    return examine()


# ---- data


def check(
    data: Place | Sequence[Place],
    model: Place | Encoder = "builtin-base",
    *,
    max_length: int = 64,
    batch_size: int = 64,
    data_dir: Place | None = None,
    columns: Sequence[str] | None = None,
    record_type: str | None = None,
    sample: int = 200_000,
) -> TextCheck:
    """Look at a text before training: what it holds, what is wrong with it, and what to do about it.

    ``data``: a file, or several that are read as one text. ``model`` brings the tokenizer that lengths are counted
    with. ``record_type``: read it so, where the columns leave it open; by default as the first type that fits. Leaks
    are looked for where ``data_dir`` (or ISOTROPE_DATA) names a folder of test sets. Counts are exact but for
    near-duplicates, tokens and languages, which are those of ``sample`` records, drawn at random from longer texts.
    """
    from isotrope.data.checking.text_check import Reader, check_files, check_numbers, check_text, choose_type

    files = check_files(data)
    check_numbers(max_length, batch_size, sample)
    choose_type(files, columns, record_type)
    from isotrope.data.leaks import protect
    from isotrope.evaluation.benchmark_files import has_data, protected_files

    with bar("reading the test sets", None):
        tests = protect(protected_files(data_dir)) if has_data(data_dir) else None
    from isotrope.encoders.encoder import Encoder

    encoder = model if isinstance(model, Encoder) else load(model, device="cpu")
    if max_length > encoder.max_length:
        say(f"max_length {max_length:,} is more than the model reads; lengths are held against {encoder.max_length:,}.")
        max_length = encoder.max_length
    name = "the encoder" if isinstance(model, Encoder) else str(model)
    reader = Reader(name, encoder.text_tokenizer, encoder.tokenizer.unk_token_id, encoder.max_length)
    return check_text(
        files,
        reader,
        tests,
        usable_record_types(),
        max_length=max_length,
        batch_size=batch_size,
        sample=sample,
        columns=columns,
        record_type=record_type,
        data_dir=None if data_dir is None else str(data_dir),
    )


def leaks(
    text: Sequence[Place],
    against: Sequence[Place] | None = None,
    data_dir: Place | None = None,
    output: Place | None = None,
    match: str = "sentence",
    tests_only: bool = False,
) -> LeakReport:
    """The lines of a training text that hold a sentence of the files ``against``.

    By default the STS, SICK and transfer sets of ``data_dir`` (or ISOTROPE_DATA) are protected; with ``tests_only``
    their test splits alone. With ``output`` each text is written into that folder without its leaking lines.
    ``match="pair"`` is for scored pairs that choose among encoders: a row leaks when it is a protected pair, in either
    order.
    """
    for file in (*text, *(against or ())):
        check_file(file)
    from isotrope.data.leaks import MATCHES, check_copies, find_leaks, protect, protect_pairs
    from isotrope.data.protected_pairs import holds_pairs

    if match not in MATCHES:
        raise InputError(f"Unknown match '{match}'; choose {' or '.join(MATCHES)}.", setting="match")
    files = list(against or ())
    if output is not None:
        check_copies(text, files, output)
    if data_dir is not None or not files:
        from isotrope.evaluation.benchmark_files import protected_files

        found = protected_files(data_dir, tests_only)
        files += [file for file in found if match == "sentence" or holds_pairs(file)]
    return find_leaks(text, (protect if match == "sentence" else protect_pairs)(files), output)


def links(wiki: Sequence[Place], output: Place, types: Place | None = None, min_links: int = 10) -> ExtractedLinks:
    """Write the hyperlinks of a wiki as data for EASE: a sentence, the entity it links to, its page (.tsv).

    ``wiki``: MediaWiki XML dumps or wikiextractor's JSON lines with links. Entities with fewer than ``min_links`` links
    are left out. ``types``: a table with the columns entity and entity_type; without it the infobox of an entity's page
    is its type, where the dump has one.
    """
    target = _tsv(output, "links")
    check_between("min_links", min_links, 1, 1_000_000_000)
    for source in wiki:
        check_readable(source)
    check_overwrite(target, types, *wiki)
    if types is not None:
        check_file(types)
    from isotrope.data.link_extraction import extract_links

    return extract_links(wiki, target, types, min_links)


def mine(
    pairs: Place | Sequence[Any],
    model: Place | Encoder = "builtin",
    output: Place | None = None,
    *,
    first: int | None = None,
    last: int = 50,
    margin: float | None = None,
    seed: int = 42,
    columns: Sequence[str] | None = None,
) -> Mined:
    """Find one hard negative for each pair among the positives of all pairs, by cosine under ``model``.

    Candidates of an anchor are ranked from the nearest; the anchor itself, its positives and the anchors it is a
    positive of are excluded. One of the ranks ``first`` to ``last`` is drawn at random. ``margin`` is the minimum gap
    between positive and negative cosine; with it ``first`` is 1 unless given, without it 10. With ``output`` (.tsv) the
    triples are written.
    """
    if isinstance(pairs, str | os.PathLike):
        check_file(pairs)
    check_seed(seed)
    check_overwrite(output, pairs, model)
    from isotrope.search.mining import mine as find_negatives

    return find_negatives(pairs, model, output, first=first, last=last, margin=margin, seed=seed, columns=columns)


def paraphrase(
    text: Place,
    output: Place,
    model: Encoder | Place = "builtin-base",
    share: float = 0.15,
    seed: int = 42,
    columns: Sequence[str] | None = None,
    *,
    round_trip: Sequence[Place] | None = None,
    second_round_trip: Sequence[Place] | None = None,
    beams: int = 4,
    temperature: float = 0.0,
) -> ParaphrasedFile:
    """Write pairs for CERT: each sentence of a file, and a paraphrase of it.

    Either ``model`` (with its masked-language head) replaces a ``share`` of the words. Or the sentence goes on a
    ``round_trip`` over two translation models, there and back; with a ``second_round_trip`` the pair is what came back
    from the two, as in the paper. ``beams`` and ``temperature`` (0: beam search, above: sampling) belong to the round
    trips. What came back unchanged, empty or was too long is left out and counted.
    """
    target = _tsv(output, "pairs")
    check_file(text)
    check_seed(seed)
    check_overwrite(target, text, model)
    if round_trip is None:
        if second_round_trip is not None or (beams, temperature) != (4, 0.0):
            raise InputError("second_round_trip, beams and temperature need a round_trip.", setting="round_trip")
        return _replace_words(text, target, model, share, seed, columns)
    if (model, share) != ("builtin-base", 0.15):
        raise InputError("model and share are for replaced words; a round_trip has models of its own.")
    texts = sentences_of(text, columns)
    from isotrope.data.pair_writer import write_pairs
    from isotrope.encoders.translation import Decoding, RoundTrip

    first: Iterable[str | None] = texts
    second = RoundTrip.between(round_trip, Decoding(beams, temperature, seed)).texts(texts)
    if second_round_trip is not None:
        other = RoundTrip.between(second_round_trip, Decoding(beams, temperature, seed + 1))
        first, second = second, other.texts(texts)
    pairs = zip(first, second, strict=True)
    counts = write_pairs(target, pairs, len(texts), "translating", f"{text}: no sentence came back as another one")
    return ParaphrasedFile(
        target,
        counts["pairs"],
        len(texts) - counts["pairs"],
        {"unchanged": counts["unchanged"], "empty": counts["empty"], "too_long": counts["missing"]},
    )


def _replace_words(
    text: Place, target: Path, model: Encoder | Place, share: float, seed: int, columns: Sequence[str] | None
) -> ParaphrasedFile:
    texts = sentences_of(text, columns)
    from isotrope.data.pair_writer import write_pairs
    from isotrope.encoders.encoder import Encoder
    from isotrope.encoders.paraphrase import Paraphraser

    encoder = model if isinstance(model, Encoder) else load(model, language_head=True)
    pairs, nothing = Paraphraser(encoder, share, seed).pairs(texts), f"{text}: no sentence with a word to replace"
    counts = write_pairs(target, pairs, len(texts), "paraphrasing", nothing)
    return ParaphrasedFile(target, counts["pairs"], len(texts) - counts["pairs"])


def _vectors_target(output: Place | None, shards: Place | None, ray: bool) -> Path | None:
    """Where encode writes one file, if it does."""
    if output is None and shards is None:
        raise InputError("encode needs output, a .npy file, or shards, a folder that processes share.")
    if ray and shards is None:
        raise InputError("ray needs shards: a folder that all its machines see.", setting="ray")
    target = None if output is None else Path(output)
    if target is not None and target.suffix != ".npy":
        raise InputError(f"{target}: vectors are written as .npy.", setting="output")
    return target


def _tsv(output: Place, what: str) -> Path:
    target = Path(output)
    if target.suffix != ".tsv":
        raise InputError(f"{target}: {what} are written as .tsv.", setting="output")
    return target


def _sentences(texts: Place | Sequence[str], columns: Sequence[str] | None) -> list[str]:
    return sentences_of(texts, columns) if isinstance(texts, str | os.PathLike) else list(texts)


def _check_files(given: Place | Sequence[Place] | None) -> list[Place]:
    files = [] if given is None else [given] if isinstance(given, str | os.PathLike) else list(given)
    for file in files:
        _check_data(file)
    return files


def _check_eval_data(given: Place | Sequence[Place] | None) -> None:
    """Read and refuse before a folder is made or a model is loaded."""
    files = [file for file in _check_files(given) if not _holds_images(file)]
    if files:
        from isotrope.evaluation.eval_data import read_eval_data

        read_eval_data(files)


def _encode_images(
    encoder: Encoder | Place, images: Place, target: Path, normalize: bool, truncate_dim: int | None
) -> EncodedFile:
    """``encode`` of a source of images; what cannot be decoded is left out."""
    import numpy as np

    from isotrope.data.image_corpus import IMAGES, open_images
    from isotrope.encoders.image_encoder import ImageEncoder
    from isotrope.files import written_file

    subject = _loaded(encoder, truncate_dim=truncate_dim)
    if not isinstance(subject, ImageEncoder):
        raise InputError(f"{images} holds images, and the model reads text; give a model for images.")
    corpus = open_images(images, IMAGES.name, subject.size)
    vectors = subject.encode_rows(corpus, np.arange(len(corpus)), normalize)
    with written_file(target.with_suffix(".names.txt")) as temporary:
        temporary.write_text("\n".join(corpus.image_names) + "\n", encoding="utf-8")
    with written_file(target) as temporary, open(temporary, "wb") as file:
        np.save(file, vectors)
    return EncodedFile(target, len(vectors), vectors.shape[1], corpus.counts.empty)


def _check_data(place: Place) -> None:
    """Refuse what is neither a file of text nor a source of images."""
    if _holds_images(place):
        from isotrope.data.image_sources import check_images

        check_images(place)
    else:
        check_file(place)


def _holds_images(place: Place) -> bool:
    from isotrope.data.image_sources import is_image_source  # numpy is imported by need only

    return is_image_source(place)


def _check_output(output: Place | None, resume: bool) -> None:
    """One process of a torchrun speaks for all: the others come when its folder may be there already."""
    if resume and output is None:
        raise InputError("To resume a run, give its folder as output.", setting="output")
    if output is not None and os.environ.get("RANK", "0") == "0":
        check_run_folder(output, resume)


def _loaded(encoder: Encoder | Place, pooling: str | None = None, truncate_dim: int | None = None) -> Encoder:
    if isinstance(encoder, str | os.PathLike):
        return load(encoder, pooling, truncate_dim=truncate_dim)
    if pooling is not None:
        raise InputError("The pooling of an encoder in memory is fixed; load it with the pooling you want.")
    if truncate_dim is None:
        return encoder
    from isotrope.encoders.truncation import truncated

    return truncated(encoder, truncate_dim)


def _ranges(place: Place, precision: str) -> Any:
    import numpy as np

    if not precision.endswith("int8"):
        raise InputError(f"ranges belong to int8 and uint8; precision is {precision}.", setting="ranges")
    try:
        return np.load(check_readable(place), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{place}: no array of ranges, as encode writes one next to int8 vectors.") from error


def _space(name: str, settings: Mapping[str, Any]) -> Space[Any]:
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.spaces.space_registry import find

    space = find(name)
    (chosen,) = resolve(settings, space.Settings)
    check(chosen)
    return space(chosen)
