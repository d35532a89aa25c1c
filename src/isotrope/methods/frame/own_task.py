"""A method's own task, measured on held-out text: is the next token predicted, is the order classified?"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from isotrope.data.corpus import Corpus


class OwnTask:
    """Inherit it next to ``Method``. What ``on_held_out`` gives is logged at each evaluation.

    Where ``chooses`` is set, the first number of it is the score of an evaluation, in place of the label-free one.
    """

    chooses: ClassVar[bool] = False

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """How well the task is done. ``representations`` are those of all held-out records, in eval mode."""
        raise NotImplementedError

    def test_sets(self, opened: Callable[[str], Corpus]) -> dict[str, Corpus]:
        """Other records that the task is measured on, by the name that their measures begin with.

        ``opened`` reads a file of the training data's record type. Nothing is on disk yet: labels that cannot work may
        be refused here.
        """
        return {}
