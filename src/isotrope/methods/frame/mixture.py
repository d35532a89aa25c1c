"""The methods of several sources over one encoder: what a run with several data sets trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torch import nn

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.learner import Learner
from isotrope.towers.keeping import Tower


class Mixture(Learner):
    """L of an update = L_s over a batch of source s; the encoder is one, heads and towers are each source's own.

    When to use it: data sets that need different losses, temperatures or negatives. What goes wrong: a source that
    keeps a head or a second tower of its own would leave two models; it is refused. A tower follows the updates of its
    own source only, so a queue holds keys of that source alone. Sibling: an auxiliary loss reads the text of one
    source a second time.
    """

    def __init__(self, encoder: Encoder, names: Sequence[str], parts: Sequence[Combined]) -> None:
        """``encoder`` is the one that is kept; those of the parts share its modules and may have other prompts."""
        super().__init__()
        self.sources = tuple(names)
        self.online = encoder
        self.parts = nn.ModuleList(parts)
        if len(parts) > 1:
            self._check_one_model()

    @property
    def encoder(self) -> Encoder:
        return self.online

    @property
    def members(self) -> dict[str, Combined]:
        """The parts by the names of their sources."""
        return {name: cast(Combined, part) for name, part in zip(self.sources, self.parts, strict=True)}

    @property
    def towers(self) -> dict[str, Tower]:
        return {f"{name}.{own}": tower for name, part in self.members.items() for own, tower in part.towers.items()}

    @property
    def keeps(self) -> str:
        """The last only where no source's progress shows in the score."""
        return "last" if all(part.keeps == "last" for part in self.members.values()) else "best"

    def of(self, batch: Batch) -> Combined:
        return cast(Combined, self.parts[batch.source])

    @property
    def only(self) -> Combined | None:
        """The part of a run with one source."""
        return cast(Combined, self.parts[0]) if len(self.parts) == 1 else None

    def export(self) -> Encoder:
        """The encoder with what its only source keeps; several sources keep nothing of their own."""
        return self.online if self.only is None else self.only.export().with_prompt(self.online.prompt)

    def further(self) -> dict[str, Encoder]:
        return {} if self.only is None else self.only.further()

    def _check_one_model(self) -> None:
        """Refuse what would leave a second model."""
        shared = _tensors(self.online)
        for name, part in self.members.items():
            if part.method.further():
                raise InputError(
                    f"Source '{name}': towers separate trains a second encoder, and a run of several sources has one; "
                    "set towers shared."
                )
            if _tensors(part.export()) != shared:
                raise InputError(
                    f"Source '{name}': {part.method.card.name} keeps a head of its own after the pooling, and the "
                    "sources of a run share one encoder; set head none or train-only for it, or pooling mean."
                )


def _tensors(encoder: Encoder) -> set[int]:
    return {id(tensor) for tensor in (*encoder.parameters(), *encoder.buffers())}
