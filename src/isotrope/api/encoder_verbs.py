"""Verbs that make, read or change an encoder: load, fit_space, distil, export, complete, push."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from isotrope.answers import (
    DistilledModel,
    ExportedModel,
    FittedSpace,
)
from isotrope.api.arguments import Place, given_sentences, loaded
from isotrope.data.tables import check_file
from isotrope.errors import InputError
from isotrope.files import check_overwrite, check_run_folder

if TYPE_CHECKING:
    import torch

    from isotrope.encoders.completion import Completion
    from isotrope.encoders.encoder import Encoder
    from isotrope.encoders.hub_upload import PushedModel
    from isotrope.spaces.space import Space

STUDENTS = ("static",)


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


def complete(encoder: Encoder | Place, concept: str, relation: str, top: int = 5) -> list[Completion]:
    """The ``top`` concepts that stand in ``relation`` to ``concept``, the nearest first.

    The encoder is one that the method lre trained; no other knows relations.
    """
    from isotrope.encoders.completion import complete as find_completions

    return find_completions(loaded(encoder), concept, relation, top)


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
        return space.fit(loaded(encoder, pooling), given_sentences(texts, columns))
    target = check_table(output) if isinstance(space, Map) else check_new_folder(output)
    check_overwrite(target, texts, encoder)
    found = given_sentences(texts, columns)
    subject = loaded(encoder, pooling)
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
    from isotrope.encoders.saving import check_new_folder
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.training.static_student import StaticSettings, distil_static

    (chosen,) = resolve(settings, StaticSettings)
    check(chosen)
    target = None if output is None else check_new_folder(output)
    found = given_sentences(texts, columns)
    student = distil_static(loaded(encoder), found, chosen)
    if target is None:
        return student
    student.save(target)
    return DistilledModel(to, target, len(found), len(student.tokenizer), student.dimension, student)


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
    texts = None if text is None else given_sentences(text, columns)
    from isotrope.encoders.onnx_export import FLOAT32, INT8
    from isotrope.encoders.onnx_export import export as write_export

    drift = write_export(loaded(encoder), folder, int8, texts)
    size = (folder / (INT8 if int8 else FLOAT32)).stat().st_size
    return ExportedModel(folder, "int8" if int8 else "float32", round(size / 1e6, 1), drift.to_dict())


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


def _space(name: str, settings: Mapping[str, Any]) -> Space[Any]:
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.spaces.space_registry import find

    space = find(name)
    (chosen,) = resolve(settings, space.Settings)
    check(chosen)
    return space(chosen)
