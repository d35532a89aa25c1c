"""Auxiliary losses: methods that need nothing but framed texts, so that they can be added to any other method.

    L = L_method + weight · L_auxiliary, over the views that the method shares, in a forward pass of its own

(SimCSE, section 4, adds masked language modelling so.) A file of methods/ registers one by giving its class ``Added``.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isotrope.data.corpus import Records
from isotrope.methods.frame.batch import View
from isotrope.methods.frame.method import Method, S
from isotrope.methods.frame.settings import Settings
from isotrope.tokens.padded import Tokens


@dataclass(frozen=True)
class AddedSettings(Settings):
    """One field: the weight with which the auxiliary loss is added, 0 for not at all."""

    @classmethod
    def setting(cls) -> str:
        """The name of the weight, such as mlm_weight."""
        return dataclasses.fields(cls)[0].name

    @property
    def weight(self) -> float:
        return float(getattr(self, self.setting()))


class Auxiliary(Method[S], ABC):
    """``parts`` are the names of its views, ``terms`` those of its losses; they must not meet the other method's."""

    parts: ClassVar[tuple[str, ...]]
    terms: ClassVar[tuple[str, ...]]
    Added: ClassVar[type[AddedSettings] | None] = None  # None: it stands alone only

    @classmethod
    def added_settings(cls) -> Any:
        """Its own settings where it is added to another method."""
        return cls.Settings()

    @abstractmethod
    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        """Its views of some framed texts: one of each part."""

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return self.views_of(self.frame(records.tokens()), rng)
