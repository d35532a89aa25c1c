"""What this machine can do, and which settings suit it."""

from __future__ import annotations

import importlib.util
import os
import platform
from dataclasses import asdict, dataclass, field
from typing import Any

# What `pip install 'isotrope[NAME]'` brings for a command or an option, by the modules that it needs.
EXTRAS = {
    "images": ("timm", "PIL"),
    "mlflow": ("mlflow",),
    "mteb": ("mteb",),
    "onnx": ("onnx", "onnxruntime"),
    "ray": ("ray",),
    "report": ("matplotlib",),
    "search": ("pymilvus", "milvus_lite"),
    "serve": ("starlette", "uvicorn", "prometheus_client"),
    "tensorboard": ("tensorboard",),
    "tune": ("optuna",),
    "wandb": ("wandb",),
}


@dataclass(frozen=True)
class Machine:
    """Versions, processor, memory places and installed extras; ``advice`` holds one sentence a finding."""

    isotrope: str
    python: str
    torch: str
    transformers: str
    device: str
    cores: int
    threads: int
    bfloat16: bool
    bfloat16_instructions: bool
    offline: bool
    cache: str
    data: str
    builtin_models: list[str] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)

    @property
    def advice(self) -> list[str]:
        found = []
        if self.device == "cpu" and self.threads > 8:
            found.append("More than 8 threads in one process rarely help; set OMP_NUM_THREADS=8.")
        if self.threads < min(self.cores, 8):
            found.append(f"torch uses {self.threads} of {self.cores} cores; unset OMP_NUM_THREADS or raise it.")
        if self.device == "cpu" and not self.bfloat16:
            found.append("bfloat16 does not work on this processor; keep precision at auto or float32.")
        if self.device == "cpu" and self.bfloat16 and self.bfloat16_instructions:
            found.append("This processor computes in bfloat16: `--precision bfloat16` trains faster than float32.")
        if not self.data:
            found.append("Set ISOTROPE_DATA to the folder of evaluation data, or give data_dir.")
        return found

    def to_dict(self) -> dict[str, Any]:
        facts = {
            ("built-in models" if name == "builtin_models" else name): value for name, value in asdict(self).items()
        }
        return {**facts, "advice": self.advice}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"what": name, "found": ", ".join(value) if isinstance(value, list) else value}
            for name, value in self.to_dict().items()
            if name != "advice"
        ]


def examine() -> Machine:
    """Look at this machine. Nothing here can end the process: the dangerous probe runs in its own."""
    import torch
    import transformers

    from isotrope.encoders.loading import BUILTIN, find_folder
    from isotrope.errors import InputError
    from isotrope.files import cache_folder
    from isotrope.training.half_precision import bfloat16_works
    from isotrope.version import __version__

    shipped = []
    for name in BUILTIN:
        try:
            find_folder(name)
        except InputError:
            continue
        shipped.append(name)
    return Machine(
        isotrope=__version__,
        python=platform.python_version(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        device=torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu",
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        bfloat16=bfloat16_works(),
        bfloat16_instructions=torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported(),
        offline=os.environ.get("HF_HUB_OFFLINE", "") in ("1", "true", "True")
        or os.environ.get("TRANSFORMERS_OFFLINE", "") == "1",
        cache=str(cache_folder()),
        data=os.environ.get("ISOTROPE_DATA", ""),
        builtin_models=shipped,
        extras=[name for name, modules in EXTRAS.items() if all(map(importlib.util.find_spec, modules))],
    )
