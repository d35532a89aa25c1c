"""A method that needs another run before its own: an encoder that another method makes of the same start and text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.methods.frame.method import S

AUTO = "auto"  # of a setting: make the run


@dataclass(frozen=True)
class NeededRun:
    """Train ``method`` first: from the same start, on the same text, with the loop's settings of the run itself.

    The folder of the encoder that comes out becomes the value of ``setting``. ``steps`` are its updates, None: as many
    as the run itself has. The other method's own settings are its paper's.
    """

    setting: str
    method: str
    steps: int | None = None


def open_needed(setting: str, model: str, pooling: str | None, encoder: Encoder) -> Encoder:
    """The encoder that ``setting`` names, next to ``encoder``."""
    if model == AUTO:
        raise InputError(f"{setting} auto is trained by isotrope.train; to build the method by hand, give a model.")
    return load(model, pooling, encoder.device)


def reads_rows_of(encoder: Encoder, other: Encoder, max_length: int | None) -> bool:
    """Whether ``other`` reads rows that are framed for ``encoder`` as they are; else it tokenizes the texts itself."""
    same = other.text_tokenizer.fingerprint() == encoder.text_tokenizer.fingerprint()
    return same and min(max_length or encoder.max_length, encoder.max_length) <= other.max_length


class NeedsRun(Generic[S]):
    """Inherit it next to ``Method``, with the same settings.

    When to use it: a frozen tower that is a trained encoder, and that the user should not have to train by hand. The
    training room makes that run once and keeps its encoder in the cache. What goes wrong: the method is built with the
    folder in place of the word that asked for it, so a method that is built by hand has to be given one.
    """

    @classmethod
    def needed_run(cls, settings: S) -> NeededRun | None:
        """The run that these settings ask for; None: they ask for none."""
        raise NotImplementedError
