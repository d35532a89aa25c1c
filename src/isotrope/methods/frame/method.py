"""The frame that every method fills in.

    record → views → roles → read-out → candidates → objective → update → what is kept

``views`` runs while the previous step still computes; ``represent`` does everything that needs a forward pass; ``loss``
compares. They are apart so that the loop can gather representations across processes, and cut the forward into chunks,
without a method's knowing:

- a representation is a tensor whose first dimension runs over the records of this process (or over any part of them,
  such as masked tokens); the loop gathers it, with gradient, in the order of the processes;
- ``loss`` sees the representations of the whole batch and is computed alike in every process. It may use parameters (a
  head, a distance to frozen weights), run an inner ascent on vectors, and draw noise from ``batch.generator``, the same
  everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.data.record_types import Record
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.temperature import Temperature
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Momentum, Role, Trained


class View(Protocol):
    """Rows on the host that can be cut and moved: ``Tokens`` and ``Masked`` are such."""

    def __len__(self) -> int: ...
    def to(self, device: torch.device) -> View: ...
    def rows(self, rows: slice) -> View: ...


@dataclass(frozen=True)
class Settings:
    """What a paper invented, with the paper's values. Frozen: a run cannot change its own terms."""


@dataclass(frozen=True)
class Card:
    name: str
    title: str
    paper: str
    year: int
    needs: str
    kind: str


@dataclass(frozen=True)
class Batch:
    """The views of this process's records. ``seed`` is the same in every process, and another one each step."""

    views: dict[str, View]
    size: int
    seed: int

    def __getitem__(self, name: str) -> Any:
        return self.views[name]

    def __contains__(self, name: str) -> bool:
        return name in self.views

    @property
    def generator(self) -> torch.Generator:
        """A new one at each call, always at the same beginning: ask once and keep it."""
        return torch.Generator().manual_seed(self.seed)

    def to(self, device: torch.device) -> Batch:
        return replace(self, views={name: view.to(device) for name, view in self.views.items()})

    def chunks(self, size: int | None) -> list[Batch]:
        """Cut by records; a view with k rows a record is cut into k times as many rows."""
        if size is None or size >= self.size:
            return [self]
        parts = []
        for start in range(0, self.size, size):
            end = min(start + size, self.size)
            per = {name: len(view) // self.size for name, view in self.views.items()}
            views = {name: view.rows(slice(start * per[name], end * per[name])) for name, view in self.views.items()}
            parts.append(Batch(views, end - start, self.seed))
        return parts


class Method(nn.Module):
    """A paper: class attributes for its card, ``Settings`` for its numbers, and the steps that are its own."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    year: ClassVar[int] = 0
    needs: ClassVar[str] = "sentences"
    accepts: ClassVar[tuple[str, ...]] = ()  # other kinds of record that will do
    batches: str = "unique"
    ragged: tuple[str, ...] = ()  # representations whose rows are not the batch's records
    masked_views: tuple[str, ...] | None = (
        None  # those that masked language modelling beside the method hides tokens of; None: all
    )
    kind: ClassVar[str] = "training"
    keeps: str = "best"  # "last" where the score of an evaluation says nothing about the method's progress
    needs_language_head: ClassVar[bool] = False
    judges_itself: bool = False  # it has a task of its own that held-out text can tell the progress of
    scores_itself: bool = (
        False  # the first number of that task is the score of an evaluation, in place of the label-free one
    )
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    optimiser: str = "adamw"  # or "adagrad", which leaves a row that had no gradient as it is
    starts_anew: ClassVar[bool] = False  # it makes its encoder of the data, and takes no model
    loop: ClassVar[dict[str, Any]] = {}  # settings of the loop that suit it better than the loop's own defaults
    Settings: ClassVar[type[Settings]] = Settings

    def __init__(
        self, settings: Any, encoder: Encoder, max_length: int | None = None, corpus: Corpus | None = None
    ) -> None:
        super().__init__()
        self.corpus = corpus  # for roles that must know the data: a table of entities, a number of classes
        self.settings = settings
        self.encoder = encoder
        self.max_length = max_length
        self.role = nn.ModuleDict(self.roles(encoder))

    @classmethod
    def card(cls) -> Card:
        return Card(cls.name, cls.title, cls.paper, cls.year, cls.needs, cls.kind)

    @classmethod
    def check(cls, settings: Any) -> None:
        """Raise ``InputError`` for values that cannot work."""

    @classmethod
    def check_batch(cls, settings: Any, batch_size: int, corpus: Corpus | None = None) -> None:
        """Raise ``InputError`` where the records of a step, over all processes, are too many or too few for the
        settings.

        A comparison asks before it has opened the text; ``corpus`` is None then.
        """

    @classmethod
    def record_types(cls, settings: Any) -> tuple[str, ...]:
        """The kinds of record that these settings take, in the order in which they are tried."""
        return (cls.needs, *cls.accepts)

    @classmethod
    def begin(cls, settings: Any, records: Iterable[Record], seed: int) -> Encoder:
        """The encoder to start with, where the method ``starts_anew``: the same in every process."""
        raise NotImplementedError

    @classmethod
    def usable(cls, settings: Any, corpus: Corpus, rows: Rows) -> Rows:
        """Of the rows to train on, those that the method can use."""
        return rows

    @classmethod
    def tests(cls, settings: Any, corpus: Corpus, opened: Callable[[str], Corpus]) -> dict[str, Corpus]:
        """Other records that its own task is judged on, by the name that their measures begin with.

        ``opened`` reads a file of the kind of ``corpus``. Nothing is on disk yet: labels that cannot work may be
        refused here.
        """
        return {}

    def remarks(self) -> list[str]:
        """Sentences on what the method makes of ``self.corpus``:

        what is left out, what is cut short. Said once, at the start.
        """
        return []

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        """Towers and modules besides the online encoder, each ``Trained``, ``Frozen`` or ``Momentum``."""
        return {}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        """Records → tokenised views, on the host.

        All chance comes from ``rng``, which is keyed by seed, step and process.
        """
        raise NotImplementedError

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        """Views → the tensors that ``loss`` compares."""
        raise NotImplementedError

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Named terms; the sum of each times its weight is minimised."""
        raise NotImplementedError

    def weights(self) -> dict[str, float]:
        """Of the terms that do not count once."""
        return {}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        """How many candidates an anchor is compared with, its positive among them; 0: no contrast."""
        return 0

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Numbers to log beside the terms that are not minimised: a learned temperature, where there is one.

        ``representations`` are those of the whole batch, without gradient.
        """
        learned = {name: role.module for name, role in self.role.items() if isinstance(role, Trained)}
        return {name: module().detach() for name, module in learned.items() if isinstance(module, Temperature)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """How well the method does its own task, logged at each evaluation where ``judges_itself`` is set.

        ``representations`` are those of all records that were kept aside, in eval mode and without gradient.
        """
        return {}

    def after_step(self, representations: dict[str, Tensor]) -> None:
        """Queues and the like; ``representations`` are those of the whole batch, without gradient."""

    def export(self) -> Encoder:
        """What inference keeps."""
        return self.encoder

    def frame(self, sequences: Sequence[Any]) -> Tokens:
        return self.encoder.frame(sequences, self.max_length)

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        weights = self.weights()
        return torch.stack([weights.get(name, 1.0) * term for name, term in terms.items()]).sum()

    def finish_step(self, representations: dict[str, Tensor]) -> None:
        """Called by the loop after each update: momentum towers follow, then the method's own turn."""
        for role in self.role.values():
            if isinstance(role, Momentum):
                role.follow()
        self.after_step(representations)

    def rate_of(self) -> dict[int, float]:
        """Multiple of the learning rate for the parameters (by identity) of roles; not for those that a role shares
        with the encoder.
        """
        own = {id(p) for p in self.encoder.parameters()}
        roles = [role for role in self.role.values() if isinstance(role, Trained)]
        return {id(p): role.learning_rate for role in roles for p in role.parameters() if id(p) not in own}
