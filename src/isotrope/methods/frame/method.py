"""The frame that every method fills in.

    record → views → towers → read-out → candidates → objective → update → what is kept

``views`` runs while the previous step still computes; ``represent`` does everything that needs a forward pass; ``loss``
compares. They are separate so that the loop can gather representations across processes, and cut the forward
into chunks, without a method's knowing:

- a representation is a tensor whose first dimension runs over the records of this process (or over any part of them,
  such as masked tokens: then ``ragged`` names it); the loop gathers it, with gradient, in the order of the processes;
- ``loss`` sees the representations of the whole batch and is computed alike in every process. It may use parameters (a
  head, a distance to frozen weights), run an inner ascent on vectors, and draw noise from the generator it is given.

What only some papers need is a capability in a file of its own: ``OwnTask`` (a task measured on held-out text),
``FromScratch`` (an encoder made of the data), ``Auxiliary`` (a loss that can be added to any method), ``Decoding``,
``SentencePairs``, ``MaskedLanguage``; a queue of keys is a tower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.data.image_corpus import ImageCorpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.settings import Settings
from isotrope.methods.frame.temperature import Temperature
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Tower, Trained

S = TypeVar("S", bound=Settings)
FAMILIES = ("contrastive", "generative", "supervised", "adversarial", "relational")


@dataclass(frozen=True)
class Card:
    """Who a method is. ``accepts`` are record types that will do in place of ``needs``.

    ``read_out`` is the paper's pooling, taken where training begins with a raw language model; None where the paper has
    no sentence vector (tokens only) or takes it from another network (the last state of an RNN). ``images`` is the
    record type of images that it takes as well: images or labelled-images; None: it is about text.
    """

    name: str
    title: str
    paper: str
    year: int
    needs: str = "sentences"
    family: str = "contrastive"
    accepts: tuple[str, ...] = ()
    kind: str = "training"
    read_out: str | None = None
    images: str | None = None


@dataclass(frozen=True)
class Prepared:
    """What a method makes of its data. ``usable``: the rows it can train on, None for all; ``remarks``: sentences on
    what is left out or cut short, said once at the start."""

    usable: npt.NDArray[np.bool_] | None = None
    remarks: tuple[str, ...] = ()

    def select(self, rows: Rows) -> Rows:
        """Of some rows, those that can be used."""
        return rows if self.usable is None else rows[self.usable[rows]]


class Method(nn.Module, Generic[S]):
    """A paper: its card, its settings, and the steps that are its own."""

    card: Card  # of the class; one made of two tasks has its own
    Settings: ClassVar[type[Settings]] = Settings
    batches: str = "unique"  # the order in which records are dealt out
    ragged: tuple[str, ...] = ()  # representations whose rows are not the batch's records
    shared_views: tuple[str, ...] = ()  # views of text that auxiliary losses may read
    batch_statistics: bool = False  # ``represent`` normalises over the batch, so it cannot be cut into chunks
    keeps: str = "best"  # "last" where the score of an evaluation says nothing about the method's progress
    language_head: ClassVar[bool] = False  # it needs the model's masked-language head
    defaults: ClassVar[Mapping[str, Any]] = {}  # settings of the loop and weights of auxiliary losses that suit it
    adapting: ClassVar[Mapping[str, Any]] = {}  # settings that suit it where the start is a finished sentence encoder
    advised_for: ClassVar[tuple[str, ...]] = ()  # record types of which it is the method that ``train DATA`` takes
    image_defaults: ClassVar[Mapping[str, Any]] = {}  # the same, and its own settings, where the data are images

    def __init__(
        self, settings: S, encoder: Encoder, max_length: int | None = None, corpus: Corpus | None = None
    ) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = encoder
        self.max_length = max_length
        self.corpus = corpus
        if isinstance(corpus, ImageCorpus):
            self.keeps = "last"  # as published: nothing is chosen by labels
        self.prepared = Prepared() if corpus is None else self.prepare(corpus)
        towers = self.towers(encoder)
        for name, tower in towers.items():
            if not isinstance(tower, Tower):
                raise InputError(
                    f"{self.card.name}: towers returned a {type(tower).__name__} as '{name}'; wrap it in Trained, or "
                    "in Frozen or Momentum where no gradient is to reach it."
                )
        self.tower = nn.ModuleDict(towers)

    @classmethod
    def record_types(cls, settings: S) -> tuple[str, ...]:
        """The record types that these settings take, in the order in which they are tried."""
        return (cls.card.needs, *cls.card.accepts)

    def prepare(self, corpus: Corpus) -> Prepared:
        """Look at the data once, before the towers are made: refuse what cannot work, size tables."""
        return Prepared()

    def set_held_out(self, corpus: Corpus, held: Rows) -> None:
        """Hear which rows are held out: a method that reads on behind its own record must stop before them."""

    def count(self, rows: Rows) -> None:
        """Count what the loss needs of the rows that are trained on, once they are chosen; held-out rows stay out."""

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        """Modules besides the online encoder, and how each is kept: ``Trained``, ``Frozen``, ``Momentum``, a queue."""
        return {}

    def encoder_of(self, tower: str) -> Encoder:
        """The encoder that a tower holds."""
        return cast(Encoder, self.tower[tower].module)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        """Records → tokenized views, on the host. All randomness comes from ``rng``, keyed by seed, step, process."""
        raise NotImplementedError

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        """Views → the tensors that ``loss`` compares."""
        raise NotImplementedError

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        """Named terms; the sum of each times its weight is minimised."""
        raise NotImplementedError

    def weights(self) -> dict[str, float]:
        """Of the terms that do not count once."""
        return {}

    def nested_vectors(self) -> tuple[str, ...]:
        """Representations that are vectors as ``encode`` gives them, where every term compares nothing else: the
        setting matryoshka cuts them. None: the method does not take it."""
        return ()

    def candidates(self, representations: dict[str, Tensor]) -> int:
        """How many candidates an anchor is compared with, its positive among them; 0: no contrast."""
        return 0

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Numbers to log that are not minimised: a learned temperature, where there is one.

        ``representations`` are those of the whole batch, without gradient.
        """
        learned = {name: tower.module for name, tower in self.tower.items() if isinstance(tower, Trained)}
        return {name: module().detach() for name, module in learned.items() if isinstance(module, Temperature)}

    def remarks(self, representations: dict[str, Tensor]) -> Sequence[str]:
        """Sentences on settings that do not suit the encoder, said once: ``representations`` are those of the first
        batch, all processes, without gradient, before the first update. What the data alone tell is ``Prepared``'s."""
        return ()

    def export(self) -> Encoder:
        """What inference keeps."""
        return self.encoder

    def further(self) -> dict[str, Encoder]:
        """Encoders that are saved inside the model's folder, by the name of their own."""
        return {}

    def frame(self, sequences: Sequence[Any]) -> Tokens:
        """Sequences of ids as rows: special tokens around, cut to ``max_length``, padded."""
        return self.encoder.frame(sequences, self.max_length)
