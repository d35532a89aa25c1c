"""Vectors → loss: pure functions on tensors, no model, no state."""

from isotrope.objectives.contrast import contrast, info_nce, nt_xent
from isotrope.objectives.imitation import imitation

__all__ = ["contrast", "imitation", "info_nce", "nt_xent"]
