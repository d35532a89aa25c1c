"""BERT-flow (Li et al. 2020): a Glow from sentence vectors to a Gaussian, by maximum likelihood, the encoder frozen."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.parts.invertible_flow import COUPLINGS, PERMUTATIONS, Flow
from isotrope.errors import InputError
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import bits_per_dimension
from isotrope.progress import bar
from isotrope.spaces.space import Floats, Space, SpaceWarning, check_vectors, space_card


@dataclass(frozen=True)
class FlowSettings(Settings):
    levels: int = 2  # the paper's; the released code has 3
    depth: int = 3  # steps of a level
    width: int = 32  # of the network in a coupling
    permutation: str = "random"  # random, reversal (the released code) or linear (Glow's learned 1×1 map)
    coupling: str = "additive"  # additive or affine
    learning_rate: float = 1e-3  # the paper's for target text; 2e-5 for general text
    epochs: float = 1.0  # the paper's for target text; 0.15 for its million lines of general text
    max_steps: int | None = None  # wins over epochs
    batch_size: int = 32
    max_grad_norm: float = 1.0
    seed: int = 42


class FlowSpace(Space):
    """loss = −log₂ p(u) / D,  log p(u) = log N(f(u); 0, I) + log |det ∂f/∂u|;  the new vector is z = f(u).

    The vectors are computed once, with dropout off; the released code leaves it on while it fits. The first texts set
    the normalisations before the first step. Lower bits do not mean better similarity: choose nothing by them.
    """

    card = space_card(
        name="flow",
        title="BERT-flow",
        paper="Li, Zhou, He, Wang, Yang, Li. On the Sentence Embeddings from Pre-trained Language Models. EMNLP 2020",
        year=2020,
    )
    Settings = FlowSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        for name in ("levels", "depth", "width"):
            if getattr(settings, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(settings, name)} was given.")
        for name in ("learning_rate", "epochs", "max_grad_norm"):
            if not getattr(settings, name) > 0:
                raise InputError(f"{name} must be above 0; {getattr(settings, name)} was given.")
        if settings.batch_size < 2:
            raise InputError(f"batch_size must be at least 2; {settings.batch_size} was given.")
        if settings.max_steps is not None and settings.max_steps < 0:
            raise InputError(f"max_steps must not be negative; {settings.max_steps} was given.")
        for name, choices in (("permutation", PERMUTATIONS), ("coupling", COUPLINGS)):
            if getattr(settings, name) not in choices:
                raise InputError(f"{name} is one of {', '.join(choices)}; '{getattr(settings, name)}' was given.")

    def fitted(self, vectors: Floats) -> nn.Module:
        check_vectors(vectors)
        count, width = vectors.shape
        chosen = self.settings
        if count < 2 * chosen.batch_size:
            raise InputError(
                f"{count:,} texts do not fill two batches of {chosen.batch_size}; bring more, or lower batch_size."
            )
        if count <= width:
            warnings.warn(
                f"{count:,} texts are few for a flow in {width} dimensions; bring more than that.",
                SpaceWarning,
                stacklevel=2,
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(chosen.seed)
            shape = {name: getattr(chosen, name) for name in ("levels", "depth", "width", "permutation", "coupling")}
            flow = Flow(width, **shape)
            return self._trained(flow, torch.from_numpy(vectors).float())

    def _trained(self, flow: Flow, data: Tensor) -> Flow:
        chosen = self.settings
        in_epoch = len(data) // chosen.batch_size
        steps = chosen.max_steps if chosen.max_steps is not None else max(1, math.ceil(chosen.epochs * in_epoch))
        flow.train()
        flow.latents(data[torch.randperm(len(data))[:2048]])  # sets the normalisations
        optimiser = torch.optim.Adam(flow.parameters(), lr=chosen.learning_rate)
        order = torch.empty(0, dtype=torch.int64)
        with torch.enable_grad(), bar("fitting the flow", steps) as advance:
            for _ in range(steps):
                if len(order) < chosen.batch_size:
                    order = torch.randperm(len(data))
                rows, order = order[: chosen.batch_size], order[chosen.batch_size :]
                loss = bits_per_dimension(*flow.latents(data[rows]))
                if not loss.isfinite():
                    raise InputError("The likelihood of the flow is no longer a number; lower learning_rate.")
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(flow.parameters(), chosen.max_grad_norm)
                optimiser.step()
                advance(1, f"{loss.item():.3f} bits")
        return flow.eval()
