"""A short name for everything that decides an encoder's vectors: what caches and run folders know a model by.

    fingerprint = digest(tokenizer, read-out, length, prompt, backbone (config and weights), token weights, parts)

Two models with the same weights can still differ: in the activation, the number of heads, the ε of a layer norm, the
rotary base. So the whole config counts, but for what no vector hangs on in evaluation: names, versions, dropout. Where
a trusted folder brought its own code, the code counts too.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from isotrope.encoders.parts.part import Part
from isotrope.encoders.pooling import Pooling
from isotrope.files import digest

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

# What a config holds besides: where it came from, how it is trained, what a forward returns.
INDIFFERENT = {
    "architectures",
    "chunk_size_feed_forward",
    "dtype",
    "id2label",
    "initializer_factor",
    "initializer_range",
    "label2id",
    "name_or_path",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
    "tie_word_embeddings",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}


def fingerprint(encoder: Encoder) -> str:
    """Of the vectors that ``encode`` gives."""
    (found,) = readings(encoder, [encoder.pooling], [*encoder.parts], encoder.token_weights)
    return found


def readings(
    encoder: Encoder, poolings: Sequence[Pooling], parts: Sequence[nn.Module] = (), weights: nn.Module | None = None
) -> list[str]:
    """Of encoders over the same backbone, one for each pooling; the weights are read once."""
    backbone = digest(_config(encoder.backbone), *_tensors(encoder.backbone))
    behind = [
        digest(_described(module), *_tensors(module)) for module in (*parts, *([] if weights is None else [weights]))
    ]
    setting = f"{encoder.max_length} {encoder.prompt} {encoder.causal} {weights is None}"
    tokenizer = encoder.text_tokenizer.fingerprint()
    return [digest(tokenizer, str(pooling), setting, backbone, *behind) for pooling in poolings]


def _tensors(module: nn.Module) -> list[str]:
    """A digest of each tensor: its name, dtype and bytes (bfloat16 has no twin in numpy, so bytes are looked at)."""
    found = []
    for name, value in module.state_dict().items():
        flat = value.detach().cpu().contiguous().reshape(-1)
        found.append(digest(f"{name} {value.dtype} {tuple(value.shape)}", flat.view(torch.uint8).numpy().tobytes()))
    return found


def _config(backbone: nn.Module) -> str:
    config: Any = backbone.config
    facts = asdict(config) if is_dataclass(config) and not isinstance(config, type) else config.to_dict()
    kept = {
        name: value
        for name, value in facts.items()
        if name not in INDIFFERENT and not name.startswith("_") and "dropout" not in name
    }
    return f"{type(backbone).__name__} {_own_code(backbone)}{json.dumps(kept, sort_keys=True, default=str)}"


def _own_code(backbone: nn.Module) -> str:
    """A digest of the code that a trusted folder brought along; empty for classes of transformers and ours."""
    if not type(backbone).__module__.startswith("transformers_modules"):
        return ""
    folder = Path(inspect.getfile(type(backbone))).parent
    return digest(*(file.read_bytes() for file in sorted(folder.glob("*.py")))) + " "


def _described(module: nn.Module) -> str:
    """Its class and all that its shape says: an activation has no weights, and changes every vector."""
    config = json.dumps(module.config(), sort_keys=True, default=str) if isinstance(module, Part) else ""
    return f"{type(module).__name__} {config} {module!r}"
