"""BERT-flow (Li et al. 2020): a Glow from sentence vectors to a Gaussian, by maximum likelihood, the encoder frozen."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.invertible_flow import COUPLINGS, PERMUTATIONS, Flow
from isotrope.errors import InputError
from isotrope.methods.frame.settings import Layers, OneOf, Positive, Settings, Width, at_least
from isotrope.objectives import bits_per_dimension
from isotrope.progress import bar
from isotrope.spaces.space import Floats, Space, SpaceWarning, check_vectors, space_card
from isotrope.training.loop_settings import Seed


@dataclass(frozen=True)
class FlowSettings(Settings):
    """The paper's values for fitting to the target text; general text takes a smaller rate and fewer epochs."""

    levels: Annotated[Layers, "Levels, each of which halves the dimensions; the paper's 2, the released code's 3"] = 2
    depth: Annotated[Layers, "Steps of a level: normalisation, permutation, coupling"] = 3
    width: Annotated[Width, "Hidden width of the network in a coupling"] = 32
    permutation: Annotated[
        str,
        OneOf(*PERMUTATIONS),
        "Mixing of the dimensions; reversal: the released code's, linear: Glow's learned 1×1 map",
    ] = "random"
    coupling: Annotated[str, OneOf(*COUPLINGS), "What a coupling does to half of the dimensions"] = "additive"
    learning_rate: Annotated[Positive, "Learning rate of Adam; the paper's for general text is 2e-5"] = 1e-3
    epochs: Annotated[Positive, "Passes over the texts; 0.15 for the paper's million lines of general text"] = 1.0
    max_steps: Annotated[int | None, at_least(0), "Updates; wins over epochs"] = None
    batch_size: Annotated[int, at_least(2), "Texts in an update"] = 32
    max_grad_norm: Annotated[Positive, "Longest gradient; longer ones are scaled down to it"] = 1.0
    seed: Annotated[Seed, "Random seed of the initial weights and the order of the texts"] = 42


class FlowSpace(Space[FlowSettings]):
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
    last = True

    @classmethod
    def found_in(cls, encoder: Encoder) -> bool:
        return any(isinstance(part, Flow) for part in encoder.parts)

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
            flow = Flow(width, chosen.levels, chosen.depth, chosen.width, chosen.permutation, chosen.coupling)
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
