"""A method that learns classes: its classifier is kept with the model, so that the model can predict."""

from __future__ import annotations

from isotrope.encoders.classifier import Classifier


class Classifying:
    """Inherit it next to ``Method``. After training the classifier is calibrated on held-out records and saved.

    It reads the vectors that ``encode`` gives, or those of pairs read together (``inputs`` is 2).
    """

    def classifier(self) -> Classifier | None:
        """The trained classifier; None: one is fitted to the final vectors of the training texts."""
        return None
