"""A method that needs another run before its own: an encoder that another method makes of the same start and text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from isotrope.methods.frame.method import S


@dataclass(frozen=True)
class NeededRun:
    """Train ``method`` first: from the same start, on the same text, with the loop's settings of the run itself.

    The folder of the encoder that comes out becomes the value of ``setting``. ``steps`` are its updates, None: as many
    as the run itself has. The other method's own settings are its paper's.
    """

    setting: str
    method: str
    steps: int | None = None


class NeedsRun(Generic[S]):
    """Inherit it next to ``Method``, with the same settings.

    When to use it: a frozen tower that is a trained encoder, and that the user should not have to train by hand. The
    training room makes that run once and keeps its encoder in the cache. What goes wrong: the method is built with the
    folder in place of the word that asked for it, so a method that is built by hand has to be given one.
    """

    @classmethod
    def needed_run(cls, settings: S) -> NeededRun | None:
        """The run that these settings ask for; None: they ask for none."""
        raise NotImplementedError
