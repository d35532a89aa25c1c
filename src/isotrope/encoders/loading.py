"""Read an encoder from a Hugging Face folder, a sentence-transformers folder, the package, or a hub."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.heads import Dense, Norm, Normalise
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.saving import OLD_KEYS
from isotrope.errors import InputError

BUILTIN = ("builtin", "builtin-base")
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]


def load(
    name_or_path: str | os.PathLike[str] = "builtin",
    pooling: str | None = None,
    device: str | torch.device | None = None,
    language_head: bool = False,
) -> Encoder:
    """An encoder ready to use.

    ``pooling`` replaces the one stored with the model; a plain Hugging Face folder, which stores none, gets mean pooling.
    ``language_head`` keeps the masked-language head, for methods that train it.
    """
    folder = find_folder(str(name_or_path))
    _check(folder)
    parts = _modules(folder)
    max_length = _max_length(folder)
    tokenizer = _tokenizer(folder)
    backbone, language_model = _backbone(folder, language_head)
    layers = int(backbone.config.num_hidden_layers)
    stored, after = _after_backbone(folder, parts, layers)
    chosen = Pooling.named(pooling, layers) if pooling is not None else stored or Pooling.named("mean", layers)
    facts_file = folder / "isotrope.json"
    facts = json.loads(facts_file.read_text(encoding="utf-8")) if facts_file.is_file() else {}
    limit = getattr(tokenizer, "model_max_length", None)
    if max_length is None and limit is not None and limit < 1 << 20:
        max_length = int(limit)
    encoder = Encoder(backbone, tokenizer, chosen, after, max_length, _prompt(folder), facts, language_model)
    return encoder.to(torch.device(device) if device is not None else default_device()).eval()


def default_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def find_folder(name: str) -> Path:
    """The folder a name stands for; a hub id is fetched once."""
    if name in BUILTIN:
        folder = Path(__file__).parent / "builtin" / name
        if not folder.is_dir():
            raise InputError(f"This version of isotrope ships no '{name}' yet; give a model folder or a hub id with --model.")
        return folder
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise InputError(f"{name}: this is a file; give the model's folder.")
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name or not name:
        raise InputError(f"{name!r}: no such model folder.")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=HUB_FILES))
    except HFValidationError as error:
        raise InputError(f"{name!r} is neither a model folder nor a hub id such as owner/name.") from error
    except RepositoryNotFoundError as error:
        raise InputError(f"{name!r}: no such folder here, and the hub knows no such model.") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise InputError(
            f"{name!r}: no such folder here, and the hub cannot be reached; give a local folder, or fetch it where there is a network."
        ) from error


def _check(folder: Path) -> None:
    files = {file.name for file in folder.iterdir()}
    if "config.json" not in files:
        raise InputError(f"{folder}: no config.json; this is not a model folder.")
    if not files & set(WEIGHT_FILES):
        pickled = "pytorch_model.bin" in files
        hint = "only pytorch_model.bin, which is not read for safety; convert it to safetensors" if pickled else "no model.safetensors"
        raise InputError(f"{folder}: the weights are missing: {hint}.")
    if not files & set(TOKENIZER_FILES):
        raise InputError(f"{folder}: the tokeniser is missing; one of {', '.join(TOKENIZER_FILES)} was expected.")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from error


@contextmanager
def _quiet() -> Iterator[None]:
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        with _quiet():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder}: the tokeniser cannot be loaded ({_first_line(error)}).") from error


def _backbone(folder: Path, language_head: bool) -> tuple[Any, Any]:
    from safetensors import SafetensorError
    from transformers import AutoModel, AutoModelForMaskedLM

    try:
        with _quiet():
            choose = AutoModelForMaskedLM if language_head else AutoModel
            model = choose.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype=torch.float32)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{folder}: the model cannot be loaded ({_first_line(error)}).") from error
    return (model.base_model, model) if language_head else (model, None)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """(class name, folder) of each sentence-transformers module; none for a plain Hugging Face folder."""
    listing = folder / "modules.json"
    if not listing.is_file():
        return []
    return [(str(entry["type"]).rsplit(".", 1)[-1], folder / str(entry["path"])) for entry in _json(listing)]


def _max_length(folder: Path) -> int | None:
    config = folder / "sentence_bert_config.json"
    value = _json(config).get("max_seq_length") if config.is_file() else None
    return int(value) if value else None


def _prompt(folder: Path) -> str:
    config = folder / "config_sentence_transformers.json"
    if not config.is_file():
        return ""
    facts = _json(config)
    return str((facts.get("prompts") or {}).get(facts.get("default_prompt_name") or "", "") or "")


def _after_backbone(folder: Path, parts: list[tuple[str, Path]], layers: int) -> tuple[Pooling | None, list[nn.Module]]:
    pooling: Pooling | None = None
    weights: list[float] | None = None
    after: list[nn.Module] = []
    for name, place in parts:
        if name == "Transformer":
            continue
        config = _json(place / "config.json") if (place / "config.json").is_file() else {}
        if name == "WeightedLayerPooling":
            start = int(config.get("layer_start", 4))
            weights = [0.0] * start + _weights(place)["layer_weights"].tolist()
        elif name == "Pooling":
            pooling = _pooling(place, config, layers, weights, bool(_prompt(folder)))
        elif name == "Dense":
            after.append(_dense(place, config))
        elif name == "Normalize":
            after.append(Normalise())
        elif name == "LayerNorm":
            norm = Norm(int(config["dimension"]))
            norm.load_state_dict(_weights(place))
            after.append(norm)
        elif name != "Dropout":
            raise InputError(f"{folder}: modules.json names a {name} module, which isotrope does not know.")
    return pooling, after


def _pooling(place: Path, config: dict[str, Any], layers: int, weights: list[float] | None, prompted: bool) -> Pooling:
    modes = config.get("pooling_mode") or [mode for mode, key in OLD_KEYS.items() if config.get(key)] or "mean"
    names = (modes,) if isinstance(modes, str) else tuple(modes)
    if not config.get("include_prompt", True) and prompted:
        raise InputError(f"{place}: this model leaves its prompt out of the pooling, which isotrope does not do.")
    pooling = Pooling.named("+".join(names), layers)
    return Pooling.weighted(pooling.modes, weights) if weights else pooling


def _dense(place: Path, config: dict[str, Any]) -> Dense:
    if config.get("use_residual"):
        raise InputError(f"{place}: a Dense module with a residual connection is not supported.")
    path = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = getattr(nn, path.rsplit(".", 1)[-1], None) if path.startswith("torch.nn.") else None
    if activation is None or not issubclass(activation, nn.Module):
        raise InputError(f"{place}: the activation '{path}' is not one of torch.nn.")
    dense = Dense(int(config["in_features"]), int(config["out_features"]), bool(config.get("bias", True)), activation())
    dense.load_state_dict(_weights(place))
    return dense


def _weights(place: Path) -> dict[str, torch.Tensor]:
    file = place / "model.safetensors"
    if not file.is_file():
        raise InputError(f"{place}: model.safetensors is missing (pickled weights are not read).")
    return load_file(file)
