"""What a part of a saved model is: one entry of modules.json, with a folder that the part reads and writes itself.

    modules.json    {"type": package + type_name, "path": "2_Dense"}
    2_Dense/        config.json (``config``) and, where there are weights, model.safetensors (``tensors``)

A model folder is a chain of parts in the order of their ``stage``: a backbone, the read-out, then any number of vector
parts. A new part is one file in this folder: subclass ``VectorPart`` (or ``Part`` for a read-out, ``Backbone`` for a
backbone) and set ``type_name``. The registry, the folder's reader, its writer and sentence-transformers find it by
that name.

The parts of sentence-transformers keep their stock names, so every reader of that format loads them. A part without a
stock twin sets ``package = OWN`` and says in ``on_features`` what it does there (st_modules.py).
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from safetensors.torch import save_file
from torch import Tensor, nn

from isotrope.encoders.stored_files import TENSORS, gist, read_tensors
from isotrope.errors import InputError
from isotrope.files import write_json

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.assembly import Assembly
    from isotrope.encoders.encoder import Encoder

STOCK = "sentence_transformers.models."  # the old path, which old and new versions of it know
OWN = "isotrope.encoders.parts.st_modules."
KNOWN: dict[str, type[Part]] = {}


class Stage(IntEnum):
    """Where in the chain a part stands."""

    BACKBONE = 0
    LAYERS = 1
    TOKENS = 2
    POOLING = 3
    VECTORS = 4


class Part:
    """One entry of modules.json.

    Reading: ``read`` makes the part from its folder alone, then ``join`` puts it into the encoder being assembled.
    Writing: ``of`` finds the part in an encoder, then ``write`` fills its folder.
    """

    type_name: ClassVar[str] = ""
    package: ClassVar[str] = STOCK
    needs_config: ClassVar[bool] = True  # whether a folder without its config.json is refused
    stage: ClassVar[Stage]

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if not cls.__dict__.get("type_name"):
            return
        other = KNOWN.get(cls.type_name)
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{cls.type_name} is saved by {other.__qualname__} of {other.__module__} already.")
        KNOWN[cls.type_name] = cls

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        """What ``encoder`` holds of this part; None where there is nothing."""
        raise NotImplementedError

    def config(self) -> dict[str, Any]:
        """What config.json says."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """What model.safetensors holds; none: no such file."""
        return {}

    def write(self, place: Path) -> None:
        """Fill the folder."""
        write_json(place / "config.json", self.config())
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors().items()}
        if tensors:
            save_file(tensors, place / TENSORS)

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        """The part of a folder, whose config.json says ``config``."""
        raise NotImplementedError

    def join(self, assembly: Assembly, place: Path) -> None:
        """Become part of an encoder, or refuse what it cannot be part of; ``place`` is for the message."""
        raise NotImplementedError

    def on_features(self, features: dict[str, Any]) -> dict[str, Any]:
        """What sentence-transformers' features become; asked only of parts with ``package = OWN``."""
        raise NotImplementedError


class ModulePart(Part, nn.Module):
    """A part that is a module: its weights are its state, and ``config`` holds the arguments that build it."""

    @classmethod
    def build(cls, config: dict[str, Any]) -> Self:
        """The module before its weights are filled in."""
        return cls(**config)

    def tensors(self) -> dict[str, Tensor]:
        return self.state_dict()

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        try:
            part = cls.build(config)
            if part.state_dict():
                part.load_state_dict(read_tensors(place))
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"{place}: config.json and {TENSORS} do not fit together ({gist(error)}).") from error
        return part


class VectorPart(ModulePart):
    """A module after the pooling: vectors [rows, d] → [rows, ``output_width(d)``]."""

    stage = Stage.VECTORS

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        return None  # the encoder holds such parts as they are, in ``parts``

    def output_width(self, width: int) -> int:
        """The width of its vectors, for vectors of ``width``."""
        return width

    def input_width(self) -> int | None:
        """The width of the vectors that it takes; None: any."""
        return None

    def join(self, assembly: Assembly, place: Path) -> None:
        assembly.parts.append(self)
        assembly.places[id(self)] = place

    def on_features(self, features: dict[str, Any]) -> dict[str, Any]:
        return {"sentence_embedding": self(features["sentence_embedding"])}


class Backbone(Part):
    """The first part: what makes token states of token ids, with its tokenizer.

    ``own_pooling`` names the pooling that belongs to it, where there is one: no read-out stands behind it then.
    """

    stage = Stage.BACKBONE
    own_pooling: ClassVar[str] = ""

    def __init__(
        self, backbone: Any, tokenizer: Any, language_model: Any = None, max_length: int | None = None
    ) -> None:
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.language_model = language_model
        self.max_length = max_length

    @classmethod
    def open(cls, place: Path, pooling: str | None, language_head: bool) -> Self:
        """The backbone of a folder; refuses, before it reads the weights, what the caller asks for in vain."""
        raise NotImplementedError
