"""Networks for images by name: ``timm:resnet18`` and any other of timm, or ``conv``, a small one that needs no package.

    timm:NAME[@SIDE]     initialised from scratch; SIDE is that of its images, by default that of the data or 224
    conv[:WIDTH][@SIDE]  four convolutions of WIDTH to 8·WIDTH channels, each halving the side; for tests and demos

A ResNet for images of 64 pixels or less has SimCLR's small stem: a 3×3 convolution of stride 1 and no max-pooling.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.shared_batch_norm import share_statistics
from isotrope.errors import InputError

TIMM, CONV = "timm:", "conv"
SMALL = 64  # images up to here have the small stem
USUAL = 224
WIDEST = 1024  # channels
NAME = re.compile(r"(timm:[\w.\-]+|conv(?::\d+)?)(?:@(\d+))?")


@dataclass(frozen=True)
class VisionConfig:
    """What builds a network again. Pixels in [0, 1] are normalised by ``mean`` and ``std`` first; SimCLR does not."""

    network: str
    size: int
    stem: str  # "small" or "own"
    hidden_size: int = 0
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    num_hidden_layers: int = 1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def is_network_name(name: object) -> bool:
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def config_named(name: str, side: int | None) -> VisionConfig:
    """``side``: that of the data, where they have one."""
    found = NAME.fullmatch(name)
    if found is None:
        raise InputError(
            f"{name!r} is no network for images; give timm:NAME, as timm:resnet18, with @SIDE where it has another "
            "side than the data, or a folder that `isotrope train` wrote."
        )
    size = int(found[2]) if found[2] else side or USUAL
    if not 8 <= size <= 1024:
        raise InputError(f"{name!r}: the side of an image lies between 8 and 1024.")
    return VisionConfig(found[1], size, "small" if size <= SMALL and "resnet" in found[1] else "own")


class VisionNetwork(nn.Module):
    """Pixels in [0, 1], [n, 3, size, size] → one vector an image, by the network's own global pooling."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.network = share_statistics(_built(config))
        self.config = VisionConfig(**{**asdict(config), "hidden_size": _width(self.network, config)})
        self.register_buffer("mean", torch.tensor(config.mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(config.std).view(1, 3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        vectors: Tensor = self.network((images - self.mean) / self.std)
        return vectors


def _built(config: VisionConfig) -> nn.Module:
    if config.network.startswith(CONV):
        _, _, width = config.network.partition(":")
        if not 1 <= int(width or 32) <= WIDEST:
            raise InputError(f"'{config.network}': the width of its first convolution lies between 1 and {WIDEST:,}.")
        return small_convolutions(int(width or 32))
    try:
        import timm
    except ImportError as error:
        raise InputError(f"{config.network} needs the package timm; pip install 'isotrope[images]'.") from error
    except RuntimeError as error:  # a torchvision of another build than torch
        raise InputError(
            f"timm is here and cannot be imported: {error}. Install the torchvision of your torch."
        ) from error
    name = config.network.removeprefix(TIMM)
    sized = {"img_size": config.size} if name.startswith(("vit", "deit", "swin")) else {}
    if sized and config.size <= SMALL:
        sized["patch_size"] = 4
    try:
        network: nn.Module = timm.create_model(name, pretrained=False, num_classes=0, **sized)
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        raise InputError(f"timm cannot make a network '{name}' for images of side {config.size}: {error}") from error
    if config.stem == "small":
        put_small_stem(network, name)
    return network


def put_small_stem(network: nn.Module, name: str) -> None:
    first = getattr(network, "conv1", None)
    if not isinstance(first, nn.Conv2d) or not hasattr(network, "maxpool"):
        raise InputError(
            f"'{name}' has no stem that isotrope knows how to make small; take timm:resnet18, or a larger side."
        )
    small = nn.Conv2d(first.in_channels, first.out_channels, kernel_size=3, stride=1, padding=1, bias=False)
    nn.init.kaiming_normal_(small.weight, mode="fan_out", nonlinearity="relu")
    network.conv1 = small
    network.maxpool = nn.Identity()


def _width(network: nn.Module, config: VisionConfig) -> int:
    if config.hidden_size:
        return config.hidden_size
    mode = network.training
    with torch.no_grad():
        vectors = network.eval()(torch.zeros(1, 3, config.size, config.size))
    network.train(mode)
    if vectors.dim() != 2:
        raise InputError(
            f"'{config.network}' gives no vector an image, but {tuple(vectors.shape[1:])}; take another one."
        )
    return int(vectors.shape[1])


def small_convolutions(width: int) -> nn.Sequential:
    """Four 3×3 convolutions, each with batch norm and ReLU, then the mean over the places."""
    layers: list[nn.Module] = []
    before = 3
    for after in (width, 2 * width, 4 * width, 8 * width):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
