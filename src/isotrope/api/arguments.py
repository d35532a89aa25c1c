"""What is given to several verbs, checked before anything heavy is imported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.data.sentence_files import sentences_of
from isotrope.data.tables import check_file
from isotrope.errors import InputError
from isotrope.files import check_run_folder

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

Place = str | os.PathLike[str]


def tsv_target(output: Place, what: str) -> Path:
    target = Path(output)
    if target.suffix != ".tsv":
        raise InputError(f"{target}: {what} are written as .tsv.", setting="output")
    return target


def given_sentences(texts: Place | Sequence[str], columns: Sequence[str] | None) -> list[str]:
    return sentences_of(texts, columns) if isinstance(texts, str | os.PathLike) else list(texts)


def places(given: Place | Sequence[Place] | None) -> list[Place]:
    """One file, several or none, as a list."""
    return [] if given is None else [given] if isinstance(given, str | os.PathLike) else list(given)


def check_files(given: Place | Sequence[Place] | None) -> list[Place]:
    files = places(given)
    for file in files:
        check_data(file)
    return files


def check_eval_data(given: Place | Sequence[Place] | None) -> None:
    """Read and refuse before a folder is made or a model is loaded."""
    files = [file for file in check_files(given) if not holds_images(file)]
    if files:
        from isotrope.evaluation.eval_data import read_eval_data

        read_eval_data(files)


def check_data(place: Place) -> None:
    """Refuse what is neither a file of text nor a source of images."""
    if holds_images(place):
        from isotrope.data.image_sources import check_images

        check_images(place)
    else:
        check_file(place)


def holds_images(place: Place) -> bool:
    from isotrope.data.image_sources import is_image_source  # numpy is imported by need only

    return is_image_source(place)


def check_output(output: Place | None, resume: bool) -> None:
    """One process of a torchrun speaks for all: the others come when its folder may be there already."""
    if resume and output is None:
        raise InputError("To resume a run, give its folder as output.", setting="output")
    if output is not None and os.environ.get("RANK", "0") == "0":
        check_run_folder(output, resume)


def check_prompt(prompt_name: str | None, query: bool, document: bool) -> None:
    """One way to choose the prompt at most."""
    if sum((prompt_name is not None, query, document)) > 1:
        raise InputError("prompt_name, query and document each choose the prompt; give one of them.", "prompt_name")


def prompted(encoder: Encoder, prompt_name: str | None, query: bool, document: bool) -> Encoder:
    """With the prompt of that name; or that of queries or documents, none where the model has no such prompt."""
    from isotrope.encoders.encoder_uses import DOCUMENT_NAMES

    if prompt_name is not None:
        return encoder.with_prompt(encoder.prompt_named(prompt_name))
    wanted = ("query",) if query else DOCUMENT_NAMES if document else ()
    found = next((encoder.prompts[name] for name in wanted if name in encoder.prompts), "")
    return encoder.with_prompt(found) if wanted else encoder


def loaded(encoder: Encoder | Place, pooling: str | None = None, truncate_dim: int | None = None) -> Encoder:
    if isinstance(encoder, str | os.PathLike):
        from isotrope.encoders.loading import load

        return load(encoder, pooling, truncate_dim=truncate_dim)
    if pooling is not None:
        raise InputError("The pooling of an encoder in memory is fixed; load it with the pooling you want.")
    if truncate_dim is None:
        return encoder
    from isotrope.encoders.truncation import truncated

    return truncated(encoder, truncate_dim)
