"""Glow on vectors (Kingma and Dhariwal 2018, as in BERT-flow): an invertible map of sentence vectors to a Gaussian.

    z = f(u),   log p(u) = log N(z; 0, I) + log |det ∂f/∂u|

One step on c channels is activation normalisation, a mixing of the channels, and a coupling. After ``depth`` steps the
second half of the channels is done, and the first half goes on to the next level:

    z = [second half of level 1, second half of level 2, …, all of the last level]

With additive coupling and a permutation only the normalisation changes volumes, so log |det| is the same for every u.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isotrope.encoders.parts.part import OWN, VectorPart
from isotrope.encoders.stored_fields import Fields
from isotrope.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

PERMUTATIONS = ("random", "reversal", "linear")
COUPLINGS = ("additive", "affine")
LOG_SCALE = 3.0  # Glow's factor on the logarithms of scales: they learn three times as fast
TINY = 1e-6


class ActNorm(nn.Module):
    """y = (x + b) · exp(3 s).

    In training mode the first batch sets b and s: mean 0 and second moment 1 for each channel.
    """

    started: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(channels))
        self.log_scale = nn.Parameter(torch.zeros(channels))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.training and not self.started:
            self._start(x.detach())
        return (x + self.shift) * (LOG_SCALE * self.log_scale).exp(), LOG_SCALE * self.log_scale.sum()

    def inverse(self, y: Tensor) -> Tensor:
        return y * (-LOG_SCALE * self.log_scale).exp() - self.shift

    @torch.no_grad()
    def _start(self, x: Tensor) -> None:
        mean = x.mean(dim=0)
        self.shift.copy_(-mean)
        self.log_scale.copy_(-((x - mean).pow(2).mean(dim=0).sqrt() + TINY).log() / LOG_SCALE)
        self.started.fill_(True)


class Permutation(nn.Module):
    """Channels in another order, fixed; log |det| = 0."""

    order: Tensor

    def __init__(self, order: Tensor) -> None:
        super().__init__()
        self.register_buffer("order", order)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[:, self.order], x.new_zeros(())

    def inverse(self, y: Tensor) -> Tensor:
        return y[:, self.order.argsort()]


class LinearMap(nn.Module):
    """Glow's invertible 1×1 convolution: y = x W, learned, a rotation at first; log |det W|."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(channels, channels))[0].contiguous())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x @ self.weight, torch.linalg.slogdet(self.weight).logabsdet

    def inverse(self, y: Tensor) -> Tensor:
        return torch.linalg.solve(self.weight, y, left=False)


class Coupling(nn.Module):
    """y = (x₁, x₂ + NN(x₁)); affine: y₂ = (x₂ + shift(x₁)) · σ(scale(x₁) + 2).

    NN is Linear – ActNorm – ReLU – Linear – ActNorm – ReLU – Linear. The last one starts at zero, so additive coupling
    starts as the identity.
    """

    def __init__(self, channels: int, width: int, affine: bool) -> None:
        super().__init__()
        self.affine = affine
        half = channels // 2
        self.first, self.second = nn.Linear(half, width, bias=False), nn.Linear(width, width, bias=False)
        self.norms = nn.ModuleList([ActNorm(width), ActNorm(width)])
        self.last = nn.Linear(width, half * (2 if affine else 1))
        self.log_scale = nn.Parameter(torch.zeros(self.last.out_features))
        for layer in (self.first, self.second):
            nn.init.normal_(layer.weight, std=0.05)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept, moved = x.chunk(2, dim=1)
        shift, log_scale = self._network(kept)
        return torch.cat([kept, (moved + shift) * log_scale.exp()], dim=1), log_scale.sum(dim=1)

    def inverse(self, y: Tensor) -> Tensor:
        kept, moved = y.chunk(2, dim=1)
        shift, log_scale = self._network(kept)
        return torch.cat([kept, moved * (-log_scale).exp() - shift], dim=1)

    def _network(self, kept: Tensor) -> tuple[Tensor, Tensor]:
        hidden = kept
        for layer, norm in zip((self.first, self.second), self.norms, strict=True):
            hidden = norm(layer(hidden))[0].relu()
        output = self.last(hidden) * (LOG_SCALE * self.log_scale).exp()
        if not self.affine:
            return output, torch.zeros_like(output)
        shift, scale = output.chunk(2, dim=1)
        return shift, nn.functional.logsigmoid(scale + 2)


class Flow(VectorPart):
    """All levels. Called, it gives z alone; ``latents`` gives log |det| as well, ``inverse`` goes back exactly."""

    type_name = "IsotropeFlow"
    package = OWN

    def __init__(
        self,
        dimension: int,
        levels: int = 2,
        depth: int = 3,
        width: int = 32,
        permutation: str = "random",
        coupling: str = "additive",
    ) -> None:
        super().__init__()
        if dimension % 2**levels:
            raise InputError(
                f"A flow of {levels} levels halves {levels} times; "
                f"{dimension} dimensions are not a multiple of {2**levels}."
            )
        self.arguments: dict[str, Any] = {"dimension": dimension, "levels": levels, "depth": depth, "width": width}
        self.arguments |= {"permutation": permutation, "coupling": coupling}
        self.levels = nn.ModuleList()
        for level in range(levels):
            channels = dimension >> level
            steps = [
                part
                for _ in range(depth)
                for part in (
                    ActNorm(channels),
                    _mixing(permutation, channels),
                    Coupling(channels, width, coupling == "affine"),
                )
            ]
            self.levels.append(nn.ModuleList(steps))

    def config(self) -> dict[str, Any]:
        return self.arguments

    def input_width(self) -> int:
        return int(self.arguments["dimension"])

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        fields = Fields(place / "config.json", config)
        for name, most in (("dimension", 1 << 20), ("levels", 20), ("depth", 1000), ("width", 1 << 20)):
            fields.count(name, most=most)
        for name, known in (("permutation", PERMUTATIONS), ("coupling", COUPLINGS)):
            if fields.word(name) not in known:
                raise fields.refusal(name, f"one of {', '.join(known)}")
        return super().read(place, config)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.latents(vectors)[0]

    def latents(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """z [rows, d] and log |det ∂z/∂u| [rows]."""
        rest, done = vectors, []
        log_det = vectors.new_zeros(len(vectors))
        for number in range(len(self.levels)):
            for step in self._steps(number):
                rest, change = step(rest)
                log_det = log_det + change
            if number + 1 < len(self.levels):
                rest, finished = rest.chunk(2, dim=1)
                done.append(finished)
        return torch.cat([*done, rest], dim=1), log_det

    def inverse(self, latents: Tensor) -> Tensor:
        """The u whose z this is."""
        sizes = [latents.shape[1] >> (level + 1) for level in range(len(self.levels) - 1)]
        *done, rest = latents.split([*sizes, latents.shape[1] - sum(sizes)], dim=1)
        for number in reversed(range(len(self.levels))):
            if number + 1 < len(self.levels):
                rest = torch.cat([rest, done[number]], dim=1)
            for step in reversed(self._steps(number)):
                rest = step.inverse(rest)
        return rest

    def _steps(self, level: int) -> list[Any]:
        steps = self.levels[level]
        assert isinstance(steps, nn.ModuleList)
        return list(steps)


def _mixing(permutation: str, channels: int) -> nn.Module:
    if permutation == "linear":
        return LinearMap(channels)
    return Permutation(torch.randperm(channels) if permutation == "random" else torch.arange(channels).flip(0))
