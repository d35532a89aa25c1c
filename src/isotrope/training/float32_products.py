"""Float32 products of a training run on an AMD processor, through oneDNN.

Torch hands a float32 product to MKL, which takes its AVX2 kernels on a processor that is not Intel's; oneDNN takes
AVX-512 there and is about twice as fast. Torch's switch for it is the permission to round factors to bfloat16,
``torch.set_float32_matmul_precision("medium")``. oneDNN makes use of that permission only where the processor has AMX;
AMD's have none, so the products stay float32. That is not taken on trust: before the first run a product is compared
with float64. The switch holds for the whole process, so it is set for the length of a run and set back.

oneDNN compiles a kernel for each new shape (0.3 ms), which small models do not earn back.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import nn

WORTH_IT = 1 << 20  # weights in matrices: from about two layers of width 256 on
EXACT = 2e-6  # relative error of a float32 product of 384 terms; bfloat16 factors have 2e-3
CPU_FACTS = Path("/proc/cpuinfo")


@contextmanager
def fast_products(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Inside the block float32 products on the CPU run through oneDNN, where that is exact and pays."""
    pays = device.type == "cpu" and weights_in_products(model) >= WORTH_IT and exact_and_fast()
    before = _precision() if pays else None
    if before is None:
        yield
        return
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def weights_in_products(model: nn.Module) -> int:
    return sum(part.weight.numel() for part in model.modules() if isinstance(part, nn.Linear))


@cache
def exact_and_fast() -> bool:
    """Whether oneDNN is the faster one here, and a product through it is a float32 product."""
    if torch.cuda.is_available() or not torch.backends.mkldnn.is_available() or not takes_avx512():
        return False
    before = _precision()
    if before is None:
        return False
    generator = torch.Generator().manual_seed(0)
    rows, weights = (torch.randn(shape, generator=generator) for shape in ((256, 384), (384, 384)))
    torch.set_float32_matmul_precision("medium")
    try:
        found = rows @ weights
    finally:
        torch.set_float32_matmul_precision(before)
    expected = rows.double() @ weights.double()
    return float((found - expected).norm() / expected.norm()) < EXACT


def takes_avx512() -> bool:
    """An AMD processor with AVX-512 and without AMX. Asked by name: a measured time could differ from run to run."""
    return (
        processor_vendor() == "AuthenticAMD"
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and not torch.cpu._is_amx_tile_supported()
    )


def processor_vendor() -> str:
    if not CPU_FACTS.exists():
        return "AuthenticAMD" if "AuthenticAMD" in platform.processor() else ""
    facts = (line.partition(":") for line in CPU_FACTS.read_text(encoding="utf-8", errors="replace").splitlines())
    return next((value.strip() for name, _, value in facts if name.strip() == "vendor_id"), "")


def _precision() -> str | None:
    """The user's own setting; none where it was made per backend, which torch refuses to mix with this one."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None
