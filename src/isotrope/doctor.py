"""What this machine can do for you, and what to set."""

from __future__ import annotations

import importlib.util
import os
import platform
from typing import Any


def examine() -> dict[str, Any]:
    """Facts about this machine, and advice; the one probe that can crash a process runs in a process of its own."""
    import torch
    import transformers

    import isotrope
    from isotrope.encoders.loading import BUILTIN, find_folder
    from isotrope.errors import InputError
    from isotrope.files import cache_folder
    from isotrope.training.half_precision import bfloat16_works

    shipped = []
    for name in BUILTIN:
        try:
            find_folder(name)
        except InputError:
            continue
        shipped.append(name)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    extras = {
        name: importlib.util.find_spec(name) is not None
        for name in ("sentence_transformers", "tensorboard", "wandb", "mlflow")
    }
    facts: dict[str, Any] = {
        "isotrope": isotrope.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu",
        "cores": cores,
        "threads": torch.get_num_threads(),
        "bfloat16": bfloat16_works(),
        "offline": os.environ.get("HF_HUB_OFFLINE", "") in ("1", "true", "True")
        or os.environ.get("TRANSFORMERS_OFFLINE", "") == "1",
        "cache": str(cache_folder()),
        "data": os.environ.get("ISOTROPE_DATA", ""),
        "built-in models": shipped,
        "extras": [name for name, found in extras.items() if found],
    }
    facts["advice"] = _advice(facts)
    return facts


def _advice(facts: dict[str, Any]) -> list[str]:
    advice = []
    if facts["device"] == "cpu" and facts["threads"] > 8:
        advice.append("More than 8 threads in one process rarely help; set OMP_NUM_THREADS=8.")
    if facts["threads"] < min(facts["cores"], 8):
        advice.append(f"torch uses {facts['threads']} of {facts['cores']} cores; unset OMP_NUM_THREADS or raise it.")
    if facts["device"] == "cpu" and not facts["bfloat16"]:
        advice.append("bfloat16 does not work on this processor; keep precision at auto or float32.")
    if not facts["data"]:
        advice.append("Set ISOTROPE_DATA to the folder of evaluation data, or give data_dir.")
    return advice
