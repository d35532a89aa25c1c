"""Classifiers on frozen vectors: fitted, calibrated, and kept with the model."""
