"""Verbs that use an encoder on texts: encode, predict, serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.answers import (
    EncodedFile,
)
from isotrope.api.arguments import Place, check_prompt, holds_images, loaded, prompted
from isotrope.data.tables import check_file, check_readable
from isotrope.errors import InputError, check_between
from isotrope.files import check_overwrite

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder
    from isotrope.heads.predictions import Predictions


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
    prompt_name: str | None = None,
    query: bool = False,
    document: bool = False,
    half: bool = False,
    shards: Place | None = None,
    shard_size: int = 16_384,
    ray: bool = False,
) -> EncodedFile:
    """Write the vectors of a file's sentences, one row each, as .npy; empty lines are left out, and their numbers are
    written as ``NAME.left_out.txt``.

    The file is streamed: memory does not grow with it. ``precision`` is float32, int8, uint8, binary or ubinary. int8
    needs the range of each dimension: that of these vectors, which is written as ``NAME.ranges.npy``, or the one of
    such a file, given as ``ranges``. ``truncate_dim`` keeps the leading dimensions. ``prompt_name`` names the prompt
    that goes before each text; ``query`` and ``document`` take the one for such texts, where the model has one.
    ``half``: a GPU multiplies in float16, and what that changes is said. For sentences in memory use ``Encoder.encode``
    and ``isotrope.encoders.precision.quantize``.

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
    check_prompt(prompt_name, query, document)
    from isotrope.encoders.precision import check_precision

    check_precision(precision)
    known = None if ranges is None else _ranges(ranges, precision)
    if holds_images(text):
        named = prompt_name is not None or query or document
        if precision != "float32" or columns is not None or target is None or shards is not None or named:
            raise InputError(
                f"{text}: vectors of images are float32 in one file; leave precision, columns, prompts and shards out."
            )
        return _encode_images(encoder, text, target, normalize, truncate_dim)
    from isotrope.data.left_out_lines import blank_lines, write_left_out
    from isotrope.encoders.cut_texts import counting_cut
    from isotrope.encoders.gpu_encoding import say_half_cost
    from isotrope.shards.streamed_encoding import check_text, encode_stream
    from isotrope.shards.text_blocks import TextBlocks
    from isotrope.shards.vector_form import VectorForm

    def opened() -> Encoder:
        found = prompted(loaded(encoder, truncate_dim=truncate_dim), prompt_name, query, document)
        if half:
            say_half_cost(found, next((texts for texts in blocks if any(texts)), []))
        return found

    blocks, form = TextBlocks(text, columns, shard_size), VectorForm(normalize, precision, known, half)
    if shards is None:
        assert target is not None
        with counting_cut() as counted:
            found = encode_stream(opened, blocks, target, form)
        counted.say()
        aside = write_left_out(target, blank_lines(text, columns) if found.empty else ())
        return EncodedFile(target, found.rows, found.dimension, found.empty, precision, counted.cut, aside)
    if form.needs_ranges:
        raise InputError(
            f"Shards in {precision} need ranges: encode a sample of the text with precision {precision}, and give the "
            ".ranges.npy that is written next to it.",
            setting="ranges",
        )
    check_text(blocks, Path(shards))
    if ray:
        from isotrope.shards.ray_shards import encode_on_ray

        if not isinstance(encoder, str | os.PathLike):
            raise InputError("ray loads the encoder in every process; give its name or folder.", setting="ray")
        if prompt_name is not None or query or document:
            raise InputError("ray takes the model's own prompt; leave prompt_name, query and document out.", "ray")
        whole, made = encode_on_ray(str(encoder), truncate_dim, blocks, Path(shards), form, target)
    else:
        from isotrope.shards.shard_work import encode_shards

        whole, made = encode_shards(opened(), blocks, Path(shards), form, target)
    whole.say_cut()
    aside = None if target is None else write_left_out(target, blank_lines(text, columns) if whole.empty else ())
    place, facts = target or Path(shards), (whole.empty, precision, whole.cut, aside, whole.shards, made)
    return EncodedFile(place, whole.rows, whole.store.plan.dimension, *facts)


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


def _encode_images(
    encoder: Encoder | Place, images: Place, target: Path, normalize: bool, truncate_dim: int | None
) -> EncodedFile:
    """``encode`` of a source of images; what cannot be decoded is left out."""
    import numpy as np

    from isotrope.data.image_corpus import IMAGES, open_images
    from isotrope.encoders.image_encoder import ImageEncoder
    from isotrope.files import written_file

    subject = loaded(encoder, truncate_dim=truncate_dim)
    if not isinstance(subject, ImageEncoder):
        raise InputError(f"{images} holds images, and the model reads text; give a model for images.")
    corpus = open_images(images, IMAGES.name, subject.size)
    vectors = subject.encode_rows(corpus, np.arange(len(corpus)), normalize)
    with written_file(target.with_suffix(".names.txt")) as temporary:
        temporary.write_text("\n".join(corpus.image_names) + "\n", encoding="utf-8")
    with written_file(target) as temporary, open(temporary, "wb") as file:
        np.save(file, vectors)
    return EncodedFile(target, len(vectors), vectors.shape[1], corpus.counts.empty)


def _ranges(place: Place, precision: str) -> Any:
    import numpy as np

    if not precision.endswith("int8"):
        raise InputError(f"ranges belong to int8 and uint8; precision is {precision}.", setting="ranges")
    try:
        return np.load(check_readable(place), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{place}: no array of ranges, as encode writes one next to int8 vectors.") from error


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
    if isinstance(text, str) and not text.strip():
        raise InputError("The text is empty; give a file, or a text of several words.", setting="text")
    alone = isinstance(text, str) and " " in text.strip() and not _exists(text)
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
    subject = loaded(encoder)
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


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL: a text
        return False


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
