"""Where the time of a training step goes on a GPU: its kernels, and how much each kind of them takes."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from gpu_runs import on_gpu, say, synchronize
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

STEPS = 10
SHOWN = 40
# The first kind that a word of is in the name; what none names is elementwise: norms, GELU, dropout, casts, the loss.
KINDS = {
    "attention": ("flash", "fmha", "attention", "short_rows"),
    "products": ("gemm", "nvjet", "xmma", "cutlass", "gemv", "splitk", "addmm", "aten::mm", "aten::bmm"),
    "optimiser": ("multi_tensor", "adam", "lpnorm"),
    "copies": ("memcpy", "memset", "cat", "copy"),
}
OURS = ("_forward", "_backward")  # the kernels of short_row_kernels.py


def kind_of(name: str) -> str:
    lowered = name.lower()
    if name in OURS:
        return "attention"
    if lowered.startswith("triton_"):  # the compiler names a kernel after everything in it
        return "elementwise"
    return next((kind for kind, words in KINDS.items() if any(word in lowered for word in words)), "elementwise")


def say_profile(step: Callable[[], Any], task: str, chosen: argparse.Namespace) -> None:
    """A line with the share of each kind, then the kernels that take most."""
    kernels, wall = kernel_times(step)
    whole = sum(kernels.values())
    kinds: Counter[str] = Counter()
    for name, seconds in kernels.items():
        kinds[kind_of(name)] += seconds
    shares = {kind: round(seconds / whole, 3) for kind, seconds in kinds.most_common()}
    per_step = {"wall_ms": round(wall / STEPS * 1e3, 2), "kernels_ms": round(whole / STEPS * 1e3, 2)}
    say(chosen, task=f"{task}, profile", **per_step, shares=shares)
    for name, seconds in kernels.most_common(SHOWN):
        share = round(seconds / whole, 3)
        say(chosen, kernel=name[:110], kind=kind_of(name), ms=round(seconds / STEPS * 1e3, 3), share=share)


def kernel_times(step: Callable[[], Any]) -> tuple[Counter[str], float]:
    """Seconds of each kernel in ten steps, and those of the clock on the wall; on a CPU, of each operator."""
    device = on_gpu()
    activities = [ProfilerActivity.CUDA if device else ProfilerActivity.CPU]
    synchronize()
    with profile(activities=activities) as found:
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        synchronize()
        wall = time.perf_counter() - start
    kernels: Counter[str] = Counter()
    for event in found.key_averages():
        if getattr(event, "is_user_annotation", False) or event.key.startswith(("Optimizer.", "ProfilerStep")):
            continue
        if not device or event.device_type == DeviceType.CUDA:
            kernels[event.key] += (event.self_device_time_total if device else event.self_cpu_time_total) / 1e6
    return kernels, wall
