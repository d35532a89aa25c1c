"""Which precision a run has, and whether this machine can do bfloat16 at all."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import torch

from isotrope.encoders.loading import default_device
from isotrope.errors import InputError

PROBE = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); assert float((a @ a)[0, 0]) == 64.0"


@cache
def bfloat16_works() -> bool:
    """Whether a bfloat16 matrix product gives the right answer here.

    Some CPUs announce it and then die of it, hence the subprocess.
    """
    try:
        probe = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def mixed_precision(asked: str) -> str:
    """accelerate's name for the precision of a run; auto never takes bfloat16 on a CPU."""
    if asked == "auto":
        asked = "bfloat16" if default_device().type == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    return {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}[asked]


def check_processor(optimiser: str, precision: str) -> None:
    """Refuse bfloat16 where its products would kill the process, and float16 where they would be float32 in truth.

    The probe takes seconds; only who needs it waits.
    """
    device = default_device().type
    if precision == "float16" and device == "cpu":
        raise InputError("precision float16 needs a GPU; leave precision at auto, or set bfloat16.")
    needed = optimiser == "muon" or precision == "bfloat16"
    if not needed or device == "cuda" or bfloat16_works():
        return
    if optimiser == "muon":
        raise InputError("optimiser muon computes in bfloat16, which this processor cannot do; choose adamw.")
    raise InputError("precision bfloat16 does not work on this processor; leave precision at auto.")
