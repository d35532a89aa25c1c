"""What the geometry suite says of a space, as far as the report draws it; the rest travels along for the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LayerCosines:
    """Mean cosines of token states of one layer: within one sentence, and between two."""

    layer: int
    self_similarity: float | None
    mean_cosine: float | None


@dataclass(frozen=True)
class SpaceShape:
    """The space of an encoder on the sample: singular values (the largest is 1), and how narrow its cone is."""

    mean_cosine: float
    effective_rank: float
    spectrum: list[float]
    layers: list[LayerCosines]
    described: dict[str, Any] = field(repr=False)  # all that the suite found

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> SpaceShape:
        layers = [LayerCosines(row["layer"], row["self_similarity"], row["mean_cosine"]) for row in described["layers"]]
        return cls(
            mean_cosine=described["mean_cosine"],
            effective_rank=described["effective_rank"],
            spectrum=described["spectrum"],
            layers=layers,
            described=dict(described),
        )

    def to_json(self) -> dict[str, Any]:
        return self.described


@dataclass(frozen=True)
class DensityBin:
    """The cosines of the pairs with a gold score from ``low`` to ``high``; of too few the curve is empty."""

    low: int
    high: int
    count: int
    quantiles: dict[str, float]  # by percentage
    curve: list[list[float]]  # [cosine, density]

    @property
    def label(self) -> str:
        return f"{self.low}–{self.high}"


@dataclass(frozen=True)
class PairShape:
    """What the space does with pairs that people scored; ``spearman`` is × 100."""

    spearman: float | None
    density: list[DensityBin]
    described: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> PairShape:
        names = ("low", "high", "count", "quantiles", "curve")
        bins = [DensityBin(**{name: line[name] for name in names}) for line in described["density"]]
        return cls(described["spearman"], bins, dict(described))

    def to_json(self) -> dict[str, Any]:
        return self.described
