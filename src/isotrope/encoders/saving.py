"""Write a folder in the sentence-transformers format, with stock modules wherever there is one.

Three parts have none, a flow, the pooling of SBERT-WK and that of DeepMoji: modules.json then names a class of ours,
which other readers load only where they are told to trust it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.attention import Attention
from isotrope.encoders.parts.dense import Dense, Norm, Normalise
from isotrope.encoders.parts.invertible_flow import Flow
from isotrope.encoders.parts.layer_walk import LayerWalk
from isotrope.encoders.parts.token_weights import TokenWeights
from isotrope.encoders.pooling import MODES
from isotrope.encoders.quiet import quiet
from isotrope.encoders.word_vectors import NAME as STATIC
from isotrope.encoders.word_vectors import StaticVectors, write_static
from isotrope.errors import InputError
from isotrope.files import write_json, written_folder
from isotrope.version import __version__

# The old class paths and the old pooling keys stand beside the new ones: old and new readers both find what they know.
STOCK = "sentence_transformers.models."
OWN = "isotrope.encoders.parts.st_modules."
OLD_KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}

# What stands in a model's folder; one that holds anything else is never replaced.
OURS = re.compile(
    r"(config|modules|isotrope|generation_config|sentence_\w+_config|config_sentence_transformers|tokenizer\w*|special_tokens_map"
    r"|added_tokens|vocab|model\.safetensors\.index)\.json|model[\w-]*\.safetensors|vocab\.txt|merges\.txt|\w+\.model|README\.md|\d+_\w+"
)


def save(encoder: Encoder, folder: str | os.PathLike[str]) -> None:
    target = check_target(folder)
    with written_folder(target) as temporary:
        _write(encoder, temporary)


def check_target(folder: str | os.PathLike[str]) -> Path:
    """Refuse a place that holds anything but a model, before the work is done."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: a file stands where the model's folder should be; choose another name.")
    strange = (
        sorted(entry.name for entry in target.iterdir() if not OURS.fullmatch(entry.name)) if target.is_dir() else []
    )
    if strange:
        raise InputError(
            f"{target}: the folder holds something else ({strange[0]}); choose a new folder for the model."
        )
    return target


def _write_backbone(encoder: Encoder, folder: Path) -> None:
    model = encoder.language_model or encoder.backbone
    before = model.config.output_hidden_states
    model.config.output_hidden_states = encoder.pooling.needs_all_layers
    try:
        with quiet():
            model.save_pretrained(folder)
    finally:
        model.config.output_hidden_states = before
    encoder.tokenizer.save_pretrained(folder)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": encoder.max_length, "do_lower_case": False})


def _write(encoder: Encoder, folder: Path) -> None:
    modules: list[dict[str, Any]] = []

    def add(name: str, package: str = STOCK) -> Path:
        number = len(modules)
        path = f"{number}_{name}" if number else ""
        modules.append({"idx": number, "name": str(number), "path": path, "type": package + name})
        (folder / path).mkdir(exist_ok=True)
        return folder / path

    if isinstance(encoder.backbone, StaticVectors):
        write_static(encoder, add(STATIC))
    else:
        _write_backbone(encoder, add("Transformer"))
        _write_read_out(encoder, add)
    for part in encoder.after:
        _write_after(part, add)
    write_json(folder / "modules.json", modules)
    prompts = {"default": encoder.prompt} if encoder.prompt else {}
    write_json(
        folder / "config_sentence_transformers.json",
        {
            "__version__": {"isotrope": __version__},
            "prompts": prompts,
            "default_prompt_name": "default" if prompts else None,
            "similarity_fn_name": "cosine",
        },
    )
    facts = {
        **encoder.facts,
        "pooling": encoder.pooling.name,
        "max_length": encoder.max_length,
        "isotrope": __version__,
    }
    facts |= {"causal": True} if encoder.causal else {}  # config.json has it as is_decoder; here it is said to a person
    write_json(folder / "isotrope.json", facts)


def _write_read_out(encoder: Encoder, add: Any) -> None:
    if encoder.pooling.layer_weights is not None:
        weights = encoder.pooling.layer_weights
        place = add("WeightedLayerPooling")
        width = int(encoder.backbone.config.hidden_size)
        config = {"word_embedding_dimension": width, "layer_start": 0, "num_hidden_layers": len(weights) - 1}
        write_json(place / "config.json", config)
        save_file({"layer_weights": torch.tensor(weights)}, place / "model.safetensors")
    if isinstance(encoder.token_weights, TokenWeights):
        _write_token_weights(encoder, add("WordWeights"))
    if isinstance(encoder.pooling, LayerWalk):
        _write_layer_walk(encoder.pooling, add("IsotropeLayerWalk", OWN))
    elif isinstance(encoder.token_weights, Attention):
        _write_attention(encoder.token_weights, add("IsotropeAttention", OWN))
    else:
        _write_pooling(encoder, add("Pooling"))


def _write_pooling(encoder: Encoder, place: Path) -> None:
    modes = encoder.pooling.modes
    if list(modes) != sorted(modes, key=MODES.index):
        raise InputError(f"Poolings are joined in the order {', '.join(MODES)}; '{encoder.pooling.name}' is not.")
    config: dict[str, Any] = {
        "word_embedding_dimension": int(encoder.backbone.config.hidden_size),
        "pooling_mode": modes[0] if len(modes) == 1 else list(modes),
        "include_prompt": True,
    }
    config.update({key: mode in modes for mode, key in OLD_KEYS.items()})
    write_json(place / "config.json", config)


def _write_token_weights(encoder: Encoder, place: Path) -> None:
    assert isinstance(encoder.token_weights, TokenWeights)
    weights = encoder.token_weights.weights.cpu()
    words = [str(word) for word in encoder.tokenizer.convert_ids_to_tokens(range(len(weights)))]
    # A word without a weight of its own would get that of its lower case.
    table = dict(zip(words, weights.tolist(), strict=True))
    write_json(place / "config.json", {"vocab": words, "word_weights": table, "unknown_word_weight": 1.0})
    save_file({"emb_layer.weight": weights.unsqueeze(1).contiguous()}, place / "model.safetensors")


def _write_attention(attention: Attention, place: Path) -> None:
    write_json(place / "config.json", {"width": len(attention.vector)})
    save_file({"vector": attention.vector.detach().cpu().contiguous()}, place / "model.safetensors")


def _write_layer_walk(pooling: LayerWalk, place: Path) -> None:
    write_json(place / "config.json", {name: getattr(pooling, name) for name in ("first_layer", "window", "drop_last")})


def _write_after(part: nn.Module, add: Any) -> None:
    if isinstance(part, Dense):
        place = add("Dense")
        config = {
            "in_features": part.linear.in_features,
            "out_features": part.linear.out_features,
            "bias": part.linear.bias is not None,
            "activation_function": f"{type(part.activation).__module__}.{type(part.activation).__qualname__}",
        }
        write_json(place / "config.json", config)
        save_file(
            {f"linear.{n}": p.detach().cpu().contiguous() for n, p in part.linear.named_parameters()},
            place / "model.safetensors",
        )
    elif isinstance(part, Normalise):
        write_json(add("Normalize") / "config.json", {})
    elif isinstance(part, Norm):
        place = add("LayerNorm")
        write_json(place / "config.json", {"dimension": part.norm.normalized_shape[0]})
        save_file(
            {f"norm.{n}": p.detach().cpu().contiguous() for n, p in part.norm.named_parameters()},
            place / "model.safetensors",
        )
    elif isinstance(part, Flow):
        place = add("IsotropeFlow", OWN)
        write_json(place / "config.json", part.config)
        save_file({n: p.detach().cpu().contiguous() for n, p in part.state_dict().items()}, place / "model.safetensors")
    else:
        raise InputError(f"A {type(part).__name__} cannot be written as a stock module.")
