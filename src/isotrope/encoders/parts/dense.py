"""A linear map with an activation, the Dense module of sentence-transformers: heads that are kept, and whitening."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from isotrope.encoders.parts.part import VectorPart
from isotrope.encoders.stored_fields import Fields
from isotrope.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_ACTIVATION = "torch.nn.modules.activation.Tanh"  # what sentence-transformers takes where none is named
VECTOR = "sentence_embedding"


class Dense(VectorPart):
    """y = activation(x W + b), the activation one of torch.nn; none is the identity."""

    type_name = "Dense"

    def __init__(
        self, width: int, output: int | None = None, bias: bool = True, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(width, output or width, bias=bias)
        self.activation = activation or nn.Identity()

    def forward(self, vectors: Tensor) -> Tensor:
        return self.activation(self.linear(vectors))

    def input_width(self) -> int:
        return self.linear.in_features

    def output_width(self, width: int) -> int:
        return self.linear.out_features

    def config(self) -> dict[str, Any]:
        return {
            "in_features": self.linear.in_features,
            "out_features": self.linear.out_features,
            "bias": self.linear.bias is not None,
            "activation_function": f"{type(self.activation).__module__}.{type(self.activation).__qualname__}",
        }

    def write(self, place: Path) -> None:
        """The format keeps the class of an activation alone, so one with settings or weights of its own is refused."""
        known = _activation(self.config())
        if known is None or self.activation.state_dict() or repr(known()) != repr(self.activation):
            raise InputError(
                f"A Dense module with the activation {self.activation} cannot be written: its format keeps the name of "
                "a class of torch.nn alone; take one without settings."
            )
        super().write(place)

    @classmethod
    def build(cls, config: dict[str, Any]) -> Self:
        activation = _activation(config)
        sizes = int(config["in_features"]), int(config["out_features"])
        return cls(*sizes, bool(config.get("bias", True)), activation() if activation is not None else None)

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        fields = Fields(place / "config.json", config)
        for name in ("in_features", "out_features"):
            fields.count(name)
        fields.flag("bias", True)
        if config.get("use_residual"):
            raise InputError(f"{place}: a Dense module with a residual connection is not supported.")
        check_vector(place, config, cls.type_name)
        if _activation(config) is None:
            raise fields.refusal("activation_function", "the path of an activation of torch.nn")
        return super().read(place, config)


def check_vector(place: Path, config: dict[str, Any], name: str) -> None:
    """Refuse a module that reads or writes something else than the sentence vector, such as the states of tokens."""
    if {config.get(f"module_{end}_name") or VECTOR for end in ("input", "output")} != {VECTOR}:
        raise InputError(f"{place}: a {name} module on anything but the sentence embedding is not supported.")


def _activation_path(config: dict[str, Any]) -> str:
    return str(config.get("activation_function", DEFAULT_ACTIVATION))


def _activation(config: dict[str, Any]) -> type[nn.Module] | None:
    """The class of torch.nn that a folder names; never code from elsewhere."""
    path = _activation_path(config)
    name = path.rsplit(".", 1)[-1]
    found = getattr(nn, name, None) if path.startswith("torch.nn.") else None
    known = name == "Identity" or name in nn.modules.activation.__all__
    return found if known and isinstance(found, type) and issubclass(found, nn.Module) else None
