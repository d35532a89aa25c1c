"""A momentum tower for networks with batch norm: keys are normalised by statistics of their batch, and shuffled.

In evaluation a network would use the running statistics; MoCo's key encoder uses those of the batch, in groups that
hold other images than a query's group does (shuffled batch norm). Otherwise a query finds its key by the statistics
both share: the pretext gets easy, and the features poor.
"""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.encoders.shared_batch_norm import batch_norms, set_groups
from isotrope.towers.keeping import Frozen, Momentum, Tower


class ShuffledMomentum(Momentum):
    """Frozen but for its batch norms, which see each batch; what they count is never read."""

    def train(self, mode: bool = True) -> ShuffledMomentum:
        super().train(mode)
        for part in batch_norms(self.module):
            part.train(mode)
        return self


def momentum_copy(online: nn.Module, decay: float, groups: int) -> Momentum:
    """The copy that follows ``online``: shuffled in ``groups`` where that has batch norms."""
    if not batch_norms(online):
        return Momentum(online, decay)
    set_groups(online, groups)
    return ShuffledMomentum(online, decay)


def key_vectors(tower: Tower, view: Any) -> Tensor:
    """Vectors of a view by a momentum tower."""
    encoder = cast(Encoder, cast(Frozen, tower).module)
    if isinstance(encoder, ImageEncoder) and isinstance(tower, ShuffledMomentum):
        return encoder.embed_shuffled(view)
    (keys,) = encoder.embed(view)
    return keys
