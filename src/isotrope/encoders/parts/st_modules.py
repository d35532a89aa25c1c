"""Our own parts as sentence-transformers sees them: where no stock module will do, modules.json names a class in here.

The classes are made from the parts when they are asked for: ``st_modules.IsotropeFlow`` is the part whose
``type_name`` is IsotropeFlow, wherever its file is. sentence-transformers loads them with ``trust_remote_code=True``
where isotrope is installed, and refuses them otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from isotrope.encoders.parts.part import OWN, Part
from isotrope.encoders.parts.part_registry import known_parts
from isotrope.encoders.stored_files import read_facts


class FeatureModule(nn.Module):
    """A part that takes and gives the dictionary of features that sentence-transformers passes along its modules."""

    part_class: ClassVar[type[Part]]

    def __init__(self, part: Part) -> None:
        super().__init__()
        self.part = part

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        return {**features, **self.part.on_features(features)}

    @classmethod
    def load(cls, path: str) -> FeatureModule:
        place = Path(path)
        return cls(cls.part_class.read(place, read_facts(place / "config.json")))


def __getattr__(name: str) -> type[FeatureModule]:
    part = None if name.startswith("_") else known_parts().get(name)
    if part is None or part.package != OWN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return type(name, (FeatureModule,), {"part_class": part, "__module__": __name__, "__doc__": part.__doc__})
