"""Vectors → loss: pure functions on tensors, no model, no state."""

from isotrope.objectives.contrast import contrast, info_nce, nt_xent

__all__ = ["contrast", "info_nce", "nt_xent"]
