"""Batch normalisation that knows the whole batch: over all processes, or, for MoCo, in groups apart.

    y = (x − mean) / √(variance + ε) · γ + β

SimCLR takes mean and variance over all devices: with those of one device a network can spot its partner by them. MoCo
wants the opposite: a query and its key must not share statistics, so several devices keep their own and keys are
shuffled among them. ``groups`` does that on one device (neighbours in a batch form a group), as the authors' notebook
for CIFAR does. In evaluation nothing differs from torch's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional


class SharedBatchNorm(nn.BatchNorm2d):
    """Weights, buffers and evaluation are those of ``nn.BatchNorm2d``."""

    groups: int = 1

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        groups = even_groups(self.groups, len(input))
        if groups > 1:
            return self._grouped(input, groups) if not torch.compiler.is_compiling() else self._fused(input, groups)
        return self._global(input) if process_count() > 1 else super().forward(input)

    def _grouped(self, images: Tensor, groups: int) -> Tensor:
        """One batch norm, to which the channels of each group are channels of their own; channels stay last in memory,
        where convolutions on a GPU want them."""
        assert self.running_mean is not None
        assert self.running_var is not None
        means, variances = self.running_mean.repeat(groups), self.running_var.repeat(groups)
        apart = images.permute(0, 2, 3, 1).unflatten(0, (groups, -1)).permute(1, 2, 3, 0, 4).flatten(3)
        found = functional.batch_norm(
            apart.permute(0, 3, 1, 2),  # [records, groups · channels, height, width]
            means,
            variances,
            self.weight.repeat(groups),
            self.bias.repeat(groups),
            True,
            self.momentum or 0.0,
            self.eps,
        )
        with torch.no_grad():
            self.running_mean.copy_(means.view(groups, -1).mean(dim=0))
            self.running_var.copy_(variances.view(groups, -1).mean(dim=0))
        together = found.permute(0, 2, 3, 1).unflatten(3, (groups, -1)).permute(3, 0, 1, 2, 4).flatten(0, 1)
        return together.permute(0, 3, 1, 2)

    def _fused(self, images: Tensor, groups: int) -> Tensor:
        """The same written out: a compiler makes few kernels of it, and many of a batch norm for each group."""
        assert self.running_mean is not None
        assert self.running_var is not None
        values = images.unflatten(0, (groups, -1)).float()  # [groups, records, channels, height, width]
        variance, mean = torch.var_mean(values, dim=(1, 3, 4), keepdim=True, correction=0)
        count, share = values[0].numel() // values.shape[2], self.momentum or 0.0
        with torch.no_grad():
            unbiased = variance.mean(dim=0).flatten() * (count / (count - 1))
            self.running_mean.copy_(torch.lerp(self.running_mean, mean.mean(dim=0).flatten(), share))
            self.running_var.copy_(torch.lerp(self.running_var, unbiased, share))
        scale = (variance + self.eps).rsqrt() * self.weight.view(1, 1, -1, 1, 1)
        result = (values - mean) * scale + self.bias.view(1, 1, -1, 1, 1)
        return result.flatten(0, 1).to(images.dtype)

    def _global(self, images: Tensor) -> Tensor:
        """Two sums over the processes; gradients of all reach the pixels of all."""
        values = images.float()
        count = summed(torch.tensor(float(values.numel() // values.shape[1]), device=values.device))
        mean = summed(values.sum(dim=(0, 2, 3))) / count
        centred = values - mean.view(1, -1, 1, 1)
        variance = summed(centred.square().sum(dim=(0, 2, 3))) / count
        with torch.no_grad():
            share = self.momentum or 0.0
            assert self.running_mean is not None
            assert self.running_var is not None
            self.running_mean.lerp_(mean, share)
            self.running_var.lerp_(variance * count / (count - 1), share)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
        scale = (self.weight * (variance + self.eps).rsqrt()).view(1, -1, 1, 1)
        return (centred * scale + self.bias.view(1, -1, 1, 1)).to(images.dtype)


def even_groups(wanted: int, rows: int) -> int:
    """The most groups of equal size, two rows at least, up to ``wanted``; 1 where a batch cannot be cut so."""
    groups = max(min(wanted, rows // 2), 1)
    while rows % groups:
        groups -= 1
    return groups


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        total = tensor.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        distributed.all_reduce(total)
        return total


def summed(tensor: Tensor) -> Tensor:
    return _Sum.apply(tensor)  # type: ignore[no-untyped-call]


_apart: ContextVar[bool] = ContextVar("apart", default=False)


@contextmanager
def apart() -> Iterator[None]:
    """Inside it a forward knows this process alone: each has batches of its own, and maybe not as many as others."""
    token = _apart.set(True)
    try:
        yield
    finally:
        _apart.reset(token)


def process_count() -> int:
    """The processes that share a batch."""
    if _apart.get():
        return 1
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def share_statistics(network: nn.Module) -> nn.Module:
    """The same network, its plain batch norms replaced by these; names and weights stay."""
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.BatchNorm2d:
                other = SharedBatchNorm(child.num_features, child.eps, child.momentum, child.affine)
                other.load_state_dict(child.state_dict())
                setattr(parent, name, other)
    return network


def batch_norms(module: nn.Module) -> list[nn.Module]:
    """Every batch norm inside a module, whoever made it."""
    return [part for part in module.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]


def set_groups(module: nn.Module, groups: int) -> None:
    for part in module.modules():
        if isinstance(part, SharedBatchNorm):
            part.groups = groups
