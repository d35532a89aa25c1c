"""What a sentence-transformers folder says beside the backbone:

its modules in their order, each from its own folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import nn

from isotrope.encoders.parts.attention import ATTENTION, Attention
from isotrope.encoders.parts.dense import Dense, Norm, Normalise
from isotrope.encoders.parts.invertible_flow import Flow
from isotrope.encoders.parts.layer_walk import LayerWalk
from isotrope.encoders.parts.token_weights import TokenWeights
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.saving import OLD_KEYS
from isotrope.errors import InputError

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def modules_of(folder: Path) -> list[tuple[str, Path]]:
    """(class name, folder) of each sentence-transformers module; none for a plain Hugging Face folder."""
    listing = folder / "modules.json"
    if not listing.is_file():
        return []
    try:
        return [(str(entry["type"]).rsplit(".", 1)[-1], folder / str(entry["path"])) for entry in _json(listing)]
    except (KeyError, TypeError) as error:
        raise InputError(f"{listing}: a list of modules, each with its type and path, was expected.") from error


def after_backbone(
    folder: Path, parts: list[tuple[str, Path]], backbone: Any, called: str
) -> tuple[Pooling | None, TokenWeights | Attention | None, list[nn.Module]]:
    pooling: Pooling | None = None
    token_weights: TokenWeights | Attention | None = None
    weights: list[float] | None = None
    after: list[nn.Module] = []
    layers = int(backbone.num_hidden_layers)
    for name, place in parts:
        if name == "Transformer":
            continue
        config = read_facts(place / "config.json")
        if name == "WeightedLayerPooling":
            # sentence-transformers leaves the layers alone where the backbone's config keeps them to itself.
            weights = _layer_weights(place, config, layers) if backbone.output_hidden_states else None
        elif name == "Pooling":
            pooling = _pooling(place, config, layers, bool(prompt_of(folder)))
            pooling = Pooling.weighted(pooling.modes, weights, called) if weights else pooling
            if token_weights is not None and pooling.modes != ("mean",):
                raise InputError(f"{place}: weights of words are known for a mean only, not for '{pooling.name}'.")
        elif name == "WordWeights":
            token_weights = _token_weights(place)
        elif name == "IsotropeLayerWalk":
            pooling = read_layer_walk(place)
            if not 0 <= pooling.first_layer < layers:
                raise InputError(f"{place}: first_layer is {pooling.first_layer}; the backbone has {layers} layers.")
        elif name == "IsotropeAttention":
            pooling, token_weights = ATTENTION, read_attention(place)
        elif name == "IsotropeFlow":
            after.append(read_flow(place))
        elif name == "Dense":
            after.append(_dense(place, config))
        elif name == "Normalize":
            after.append(Normalise())
        elif name == "LayerNorm":
            after.append(_filled(place, lambda config=config: Norm(int(config["dimension"]))))  # type: ignore[misc]
        elif name != "Dropout":
            raise InputError(f"{folder}: modules.json names a {name} module, which isotrope does not know.")
    return pooling, token_weights, after


def _pooling(place: Path, config: dict[str, Any], layers: int, prompted: bool) -> Pooling:
    modes = config.get("pooling_mode") or [mode for mode, key in OLD_KEYS.items() if config.get(key)] or "mean"
    names = (modes,) if isinstance(modes, str) else tuple(modes)
    if not config.get("include_prompt", True) and prompted:
        raise InputError(f"{place}: this model leaves its prompt out of the pooling, which isotrope does not do.")
    return Pooling.named("+".join(names), layers)


def _dense(place: Path, config: dict[str, Any]) -> Dense:
    if config.get("use_residual"):
        raise InputError(f"{place}: a Dense module with a residual connection is not supported.")
    if {config.get(f"module_{end}_name") or "sentence_embedding" for end in ("input", "output")} != {
        "sentence_embedding"
    }:
        raise InputError(f"{place}: a Dense module on anything but the sentence embedding is not supported.")
    path = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = getattr(nn, path.rsplit(".", 1)[-1], None) if path.startswith("torch.nn.") else None
    if activation is None or not issubclass(activation, nn.Module):
        raise InputError(f"{place}: the activation '{path}' is not one of torch.nn.")
    return _filled(
        place,
        lambda: Dense(
            int(config["in_features"]), int(config["out_features"]), bool(config.get("bias", True)), activation()
        ),
    )


def read_flow(place: Path) -> Flow:
    config = read_facts(place / "config.json")
    return _filled(place, lambda: Flow(**config))


def read_attention(place: Path) -> Attention:
    config = read_facts(place / "config.json")
    return _filled(place, lambda: Attention(int(config["width"])))


def read_layer_walk(place: Path) -> LayerWalk:
    try:
        return LayerWalk(**read_facts(place / "config.json"))
    except TypeError as error:
        raise InputError(f"{place}: config.json is not one of an SBERT-WK pooling ({gist(error)}).") from error


def _token_weights(place: Path) -> TokenWeights:
    weights = _weights(place).get("emb_layer.weight")
    if weights is None:
        raise InputError(f"{place}: the weights of the words (emb_layer.weight) are missing.")
    return TokenWeights(weights.squeeze(1))


def _layer_weights(place: Path, config: dict[str, Any], layers: int) -> list[float]:
    weights = [0.0] * int(config.get("layer_start", 4)) + _weights(place)["layer_weights"].tolist()
    if len(weights) != layers + 1:
        raise InputError(
            f"{place}: weights of {len(weights)} layers were found; the backbone has {layers + 1}, the embeddings included."
        )
    return weights


def _filled(place: Path, build: Callable[[], ModuleT]) -> ModuleT:
    weights = _weights(place)
    try:
        module = build()
        module.load_state_dict(weights)
    except InputError:  # a ValueError with a sentence of its own
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{place}: config.json and model.safetensors do not fit together ({gist(error)}).") from error
    return module


def _weights(place: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError

    file = place / "model.safetensors"
    if not file.is_file():
        raise InputError(f"{place}: model.safetensors is missing (pickled weights are not read).")
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: cannot be read ({gist(error)}).") from error


def prompt_of(folder: Path) -> str:
    facts = read_facts(folder / "config_sentence_transformers.json")
    return str((facts.get("prompts") or {}).get(facts.get("default_prompt_name") or "", "") or "")


def read_facts(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no such file."""
    facts = _json(path) if path.is_file() else {}
    if not isinstance(facts, dict):
        raise InputError(f"{path}: a JSON object was expected, not a {type(facts).__name__}.")
    return facts


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from error


def gist(error: Exception) -> str:
    """Of another library's message: its first sentence, to stand inside one of ours."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.split(". ")[0].rstrip(".")
