"""The small modules of sentence-transformers that may follow the pooling: Normalize, LayerNorm and Dropout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from isotrope.encoders.parts.dense import check_vector
from isotrope.encoders.parts.part import VectorPart
from isotrope.encoders.stored_fields import Fields

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.assembly import Assembly


class Normalize(VectorPart):
    """Unit length: x / ‖x‖."""

    type_name = "Normalize"
    needs_config = False  # it has nothing to say, and a copy of the folder may leave its empty folder out

    def forward(self, vectors: Tensor) -> Tensor:
        return nn.functional.normalize(vectors, dim=-1)

    @classmethod
    def build(cls, config: dict[str, Any]) -> Self:
        return cls()

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        check_vector(place, config, cls.type_name)
        return super().read(place, config)


class LayerNorm(VectorPart):
    """Layer normalisation of the vector, with its learned scale and shift."""

    type_name = "LayerNorm"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.norm(vectors)

    def input_width(self) -> int:
        return int(self.norm.normalized_shape[0])

    def config(self) -> dict[str, Any]:
        return {"dimension": self.norm.normalized_shape[0]}

    @classmethod
    def build(cls, config: dict[str, Any]) -> Self:
        return cls(int(config["dimension"]))

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        Fields(place / "config.json", config).count("dimension")
        return super().read(place, config)


class Dropout(VectorPart):
    """Dropout on the sentence vector: read and left out, since it changes no vector that ``encode`` gives."""

    type_name = "Dropout"
    needs_config = False

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors

    @classmethod
    def build(cls, config: dict[str, Any]) -> Self:
        return cls()

    def join(self, assembly: Assembly, place: Path) -> None:
        return
