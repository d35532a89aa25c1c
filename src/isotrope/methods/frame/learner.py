"""What the loop trains: one method with its auxiliary losses, or the methods of several sources over one encoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from torch import nn

from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch
from isotrope.towers.keeping import Tower, Trained

if TYPE_CHECKING:
    from isotrope.methods.frame.combined import Combined


class Learner(nn.Module, ABC):
    """Asked by the loop: whose batch it is, what the optimiser takes at which rate, what is kept.

    ``Combined`` is one method; ``Mixture`` holds one ``Combined`` for each source of a run.
    """

    sources: tuple[str, ...] = ()  # names of the sources that the log has lines for

    @property
    @abstractmethod
    def encoder(self) -> Encoder:
        """The online encoder as it was given."""

    @property
    @abstractmethod
    def towers(self) -> dict[str, Tower]:
        """Modules besides the online encoder."""

    @property
    @abstractmethod
    def keeps(self) -> str:
        """Which evaluation's weights a run ends with: "best" or "last"."""

    @abstractmethod
    def of(self, batch: Batch) -> Combined:
        """The method that a batch belongs to."""

    @abstractmethod
    def export(self) -> Encoder:
        """What inference keeps."""

    @abstractmethod
    def further(self) -> dict[str, Encoder]:
        """Encoders that are saved inside the model's folder, by name."""

    def rates(self, learning_rate: float) -> dict[int, float]:
        """The highest rates of the parameters (by identity) of trained towers, where ``learning_rate`` is the loop's;
        not of those that a tower shares with the encoder."""
        own = {id(parameter) for parameter in self.encoder.parameters()}
        trained = [tower for tower in self.towers.values() if isinstance(tower, Trained)]
        return {id(p): tower.rate(learning_rate) for tower in trained for p in tower.parameters() if id(p) not in own}
