"""A method that initialises its encoder from the data alone, and takes no model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from isotrope.data.record_types import Record
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.method import S


class FromScratch(Generic[S]):
    """Inherit it next to ``Method``, with the same settings.

    When to use it: tables of words or of concepts, which no pre-trained model has. What goes wrong: whatever
    ``initialise`` draws must come from ``seed``, or two processes start with different weights.
    """

    @classmethod
    def initialise(cls, settings: S, records: Iterable[Record], seed: int) -> Encoder:
        """The encoder to start with: the same in every process."""
        raise NotImplementedError
