"""SimCSE's read-out as a capability: a head that training alone sees or that is kept, a temperature that may be
learned, and for pairs a second tower.

    h = tanh(W·[CLS] + b)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar, cast

from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.second_tower import SECOND, SECOND_HEAD, second_encoder
from isotrope.methods.frame.settings import DropoutSetting, OneOf, Settings, TemperatureSetting
from isotrope.methods.frame.temperature import check_learned, temperature_tower
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Tower, Trained


@dataclass(frozen=True)
class ContrastSettings(Settings):
    """What both forms of the paper share."""

    temperature: TemperatureSetting = 0.05
    dropout: DropoutSetting = None
    head: Annotated[
        str,
        OneOf("auto", "train-only", "kept", "none"),
        "Linear + tanh head; auto: on cls pooling with nothing after it, as in the paper",
    ] = "auto"
    learn_temperature: Annotated[bool, "Learn the temperature, starting from the one given"] = False

    def rules(self) -> None:
        check_learned(self.temperature, self.learn_temperature)


C = TypeVar("C", bound=ContrastSettings)


class HeadedContrast(Method[C]):
    """An encoder read out through SimCSE's head, and a temperature that may be learned. Subclasses bring the views."""

    auto_head: ClassVar[str] = "train-only"

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.settings.dropout is not None:
            set_dropout(encoder.backbone, self.settings.dropout)
        self.head_kept = self._head() == "kept"
        head: dict[str, Tower] = {} if self._head() == "none" else {"head": Trained(tanh_head(encoder.dimension))}
        return {**head, **temperature_tower(self.settings.temperature, self.settings.learn_temperature)}

    def _head(self) -> str:
        if self.settings.head != "auto":
            return self.settings.head
        plain_cls = self.encoder.pooling.name == "cls" and not len(self.encoder.parts)
        return self.auto_head if plain_cls else "none"

    def without_lost_head(self, *names: str) -> tuple[str, ...]:
        """The names where no head that is dropped later stands behind the vectors."""
        return () if "head" in self.tower and not self.head_kept else names

    def read(self, vectors: Tensor, second: bool = False) -> Tensor:
        """Through the head; through the second tower's where it has one."""
        head = SECOND_HEAD if second and SECOND_HEAD in self.tower else "head"
        return self.tower[head](vectors) if head in self.tower else vectors

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"])

    def export(self) -> Encoder:
        return self._kept(self.encoder, "head")

    def further(self) -> dict[str, Encoder]:
        second = second_encoder(self)
        return {} if second is None else {SECOND: self._kept(second, SECOND_HEAD)}

    def _kept(self, encoder: Encoder, name: str) -> Encoder:
        head = [cast(Trained, self.tower[name]).module] if self.head_kept else []
        return encoder.with_parts([*encoder.parts, *head])
