"""What run.json says of the circumstances of a run: its start, its file, its machine."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from importlib.metadata import version
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.files import file_digest
from isotrope.methods.frame.outside_methods import outside_files
from isotrope.training.image_opening import network_name
from isotrope.training.plan import DEFAULT_MODEL, Plan
from isotrope.version import __version__


def origin_of(plan: Plan, encoder: Encoder) -> dict[str, str]:
    """What run.json says of the start."""
    in_memory = isinstance(plan.model, Encoder)
    named = network_name(plan.model, DEFAULT_MODEL) if isinstance(encoder, ImageEncoder) else str(plan.model)
    name = "none" if plan.from_scratch else "an encoder in memory" if in_memory else named
    return {"name": name, "fingerprint": encoder.fingerprint(), "pooling": encoder.pooling.name}


def method_files(*plans: Plan) -> dict[str, Any]:
    """For run.json: the digests of files of methods from outside, which change without any version saying so."""
    used = [one for plan in plans for one in (plan.method, *(auxiliary for auxiliary, _ in plan.active))]
    files = {name: file_digest(file) for one in used for name, file in outside_files(one).items()}
    return {"method_files": files} if files else {}


def source_of(plan: Plan) -> str:
    """The file that is trained on."""
    return str(plan.data) if isinstance(plan.data, str | os.PathLike) else "a list in memory"


def surroundings(device: str) -> dict[str, Any]:
    """Versions, machine, command and time of a run."""
    versions = {name: version(name) for name in ("torch", "transformers", "accelerate", "numpy")}
    return {
        "versions": {"isotrope": __version__, **versions},
        "machine": {"platform": platform.platform(), "python": platform.python_version(), "device": device},
        "command": " ".join(sys.argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


PROGRAMS = ("isotrope", "isotrope.exe", "__main__.py")


def card_command() -> str:
    """``isotrope train …``, with the folders of absolute paths left out; empty where a Python program made the run."""
    program, *words = sys.argv or [""]
    if os.path.basename(program) not in PROGRAMS or not words:
        return ""
    return shlex.join(["isotrope", *(os.path.basename(word) if os.path.isabs(word) else word for word in words)])
