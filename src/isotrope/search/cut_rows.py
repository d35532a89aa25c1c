"""Rows whose text is longer than the model reads: an index remembers them, and ``search`` and ``serve`` say how many.

The flag is kept with each row, so the number stays right when rows come and go, or a build is killed and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isotrope.encoders.cut_texts import counting_cut, note_cut
from isotrope.encoders.encoder_uses import DOCUMENT_NAMES
from isotrope.progress import say
from isotrope.search.index_manifest import Manifest

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

Flags = npt.NDArray[np.bool_]
Made = tuple[npt.NDArray[np.float32], int]  # vectors, and how many of them were encoded


def flagged(encoder: Encoder, texts: Sequence[str], encode: Callable[[], Made]) -> tuple[Made, Flags]:
    """What ``encode`` makes of ``texts``, and [texts]: which of them are cut.

    Texts are tokenized a second time only where some were cut, or had their vector before.
    """
    with counting_cut() as counted:
        made = encode()
    note_cut(counted.texts, counted.cut, counted.max_length)
    if not counted.cut and made[1] == len(texts):
        return made, np.zeros(len(texts), dtype=np.bool_)
    return made, cut_flags(encoder, texts)


def cut_flags(encoder: Encoder, texts: Sequence[str]) -> Flags:
    """[texts]: which the encoder cuts as documents. A token is a byte at least: short texts are not tokenized."""
    tokenizer = encoder.text_tokenizer
    name = next((name for name in DOCUMENT_NAMES if name in encoder.prompts), "default")
    prompt = encoder.prompt_named(name)
    room = encoder.max_length - len(tokenizer.start) - len(tokenizer.suffix)
    flags = np.array([len((prompt + text).encode()) > room for text in texts], dtype=np.bool_)
    if flags.any():
        long = [prompt + text for text, is_long in zip(texts, flags, strict=True) if is_long]
        flags[flags] = tokenizer.flat(long)[1] > room
    return flags


def say_cut(manifest: Manifest) -> None:
    """One line of the log where texts of the index were cut."""
    if manifest.cut:
        size = manifest.reading.passages
        todo = "`isotrope index … --passages 80` splits them." if size is None else f"Take fewer words than {size}."
        say(
            f"{manifest.cut:,} of the {manifest.rows:,} {'texts' if size is None else 'passages'} of the index are "
            f"longer than the model reads and were cut; words find their ends, vectors do not. {todo}"
        )
