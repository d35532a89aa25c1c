"""Read an encoder from a Hugging Face folder, a sentence-transformers folder, the package, or a hub."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import nn

from isotrope.encoders.attention import ATTENTION, Attention
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.flow import Flow
from isotrope.encoders.heads import Dense, Norm, Normalise
from isotrope.encoders.layer_walk import LayerWalk
from isotrope.encoders.packed import WEIGHTS, read_packed
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.quiet import quiet
from isotrope.encoders.saving import OLD_KEYS
from isotrope.encoders.static import NAME as STATIC
from isotrope.encoders.static import read_static
from isotrope.encoders.token_weights import TokenWeights
from isotrope.errors import InputError

ModuleT = TypeVar("ModuleT", bound=nn.Module)
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
    if (folder / WEIGHTS).is_file():
        encoder = read_packed(folder, pooling, language_head)
        return encoder.to(torch.device(device) if device is not None else default_device()).eval()
    parts = _modules(folder)
    if parts and parts[0][0] == STATIC:
        encoder = _static(folder, parts, pooling, language_head)
        return encoder.to(torch.device(device) if device is not None else default_device()).eval()
    # Folders of the first sentence-transformers keep the backbone in 0_Transformer.
    inner = next((place for name, place in parts if name == "Transformer"), folder)
    _check(inner)
    tokenizer = _tokenizer(inner)
    max_length = _fit_to_config(tokenizer, inner)
    backbone, language_model = _backbone(inner, language_head)
    facts = _facts(folder / "isotrope.json")
    stored, token_weights, after = _after_backbone(folder, parts, backbone.config, str(facts.get("pooling", "")))
    layers = int(backbone.config.num_hidden_layers)
    if isinstance(token_weights, Attention) and pooling not in (None, ATTENTION.name):
        token_weights = None  # another pooling asks no weights
    if pooling is not None and stored is not None and (facts.get("spaces") or token_weights is not None):
        if pooling != stored.name:
            raise InputError(f"{folder}: a space was fitted to this model's pooling, '{stored.name}'; load it without another pooling.")
        pooling = None
    chosen = Pooling.named(pooling, layers) if pooling is not None else stored or Pooling.named("mean", layers)
    encoder = Encoder(backbone, tokenizer, chosen, after, max_length, _prompt(folder), facts, language_model, token_weights)
    return encoder.to(torch.device(device) if device is not None else default_device()).eval()


def _static(folder: Path, parts: list[tuple[str, Path]], pooling: str | None, language_head: bool) -> Encoder:
    """A table of word vectors: no layers, no language head, and a mean."""
    if language_head:
        raise InputError(f"{folder}: a table of word vectors has no language head; start from a transformer, such as builtin-base.")
    if pooling not in (None, "mean"):
        raise InputError(f"{folder}: a table of word vectors is read out by its mean; '{pooling}' was asked for.")
    backbone, tokenizer = read_static(parts[0][1])
    stored, token_weights, after = _after_backbone(folder, parts[1:], backbone.config, "")
    if stored is not None or token_weights is not None:
        raise InputError(f"{folder}: modules.json has a pooling behind a table of word vectors, which isotrope does not know.")
    return Encoder(backbone, tokenizer, "mean", after, None, _prompt(folder), _facts(folder / "isotrope.json"))


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
    if name and folder.is_dir():  # an empty name would be the folder one stands in
        return folder
    if name and folder.exists():
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


def _facts(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no such file."""
    facts = _json(path) if path.is_file() else {}
    if not isinstance(facts, dict):
        raise InputError(f"{path}: a JSON object was expected, not a {type(facts).__name__}.")
    return facts


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        with quiet():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}: the tokeniser cannot be loaded ({_gist(error)}).") from error


def _backbone(folder: Path, language_head: bool) -> tuple[Any, Any]:
    from safetensors import SafetensorError
    from transformers import AutoModel, AutoModelForMaskedLM

    choose = AutoModelForMaskedLM if language_head else AutoModel
    settings = {"local_files_only": True, "use_safetensors": True, "dtype": torch.float32}
    try:
        with quiet():
            model, report = choose.from_pretrained(folder, ignore_mismatched_sizes=True, output_loading_info=True, **settings)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{folder}: the model cannot be loaded ({_gist(error)}).") from error
    _check_weights(folder, model, report, language_head)
    if language_head and any(not name.startswith(f"{model.base_model_prefix}.") for name in report["missing_keys"]):
        warnings.warn(
            f"{folder}: the folder holds no masked-language head; a new one is drawn at random and learns from here on.", stacklevel=4
        )
    return (model.base_model, model) if language_head else (model, None)


def _check_weights(folder: Path, model: Any, report: dict[str, Any], language_head: bool) -> None:
    """Transformers draws at random what the file does not hold; a backbone of noise must not pass for the model."""
    own = f"{model.base_model_prefix}." if language_head else ""
    missing = {name for name in report["missing_keys"] if name.startswith(own)}
    if not language_head and any(name.startswith("pooler.") for name in missing):
        # Nobody reads the pooler; a random one would give the same folder another fingerprint at each load.
        model.pooler = None
        missing = {name for name in missing if not name.startswith("pooler.")}
    wrong = sorted(missing | {name for name, *_ in report["mismatched_keys"]})
    if wrong:
        raise InputError(
            f"{folder}: the weights do not fit config.json: {len(wrong)} tensors are missing or of another size, such as {wrong[0]}."
        )


def _gist(error: Exception) -> str:
    """Of another library's message: its first sentence, to stand inside one of ours."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.split(". ")[0].rstrip(".")


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """(class name, folder) of each sentence-transformers module; none for a plain Hugging Face folder."""
    listing = folder / "modules.json"
    if not listing.is_file():
        return []
    try:
        return [(str(entry["type"]).rsplit(".", 1)[-1], folder / str(entry["path"])) for entry in _json(listing)]
    except (KeyError, TypeError) as error:
        raise InputError(f"{listing}: a list of modules, each with its type and path, was expected.") from error


def _fit_to_config(tokenizer: Any, folder: Path) -> int | None:
    """What sentence_bert_config.json (or sentence_roberta_config.json …) says of the tokeniser; gives the length to cut at."""
    configs = [_facts(file) for file in sorted(folder.glob("sentence_*_config.json"))]
    if any(config.get("do_lower_case") for config in configs):
        _lower_case(tokenizer)
    lengths = [config["max_seq_length"] for config in configs if config.get("max_seq_length")]
    limit = lengths[0] if lengths else tokenizer.model_max_length
    if not isinstance(limit, int | float) or limit < 1:
        raise InputError(f"{folder}: max_seq_length must be a number above 0, not {limit!r}.")
    return int(limit) if limit < 1 << 20 else None  # a tokeniser without a limit says 10³⁰


def _lower_case(tokenizer: Any) -> None:
    from tokenizers.normalizers import Lowercase, Sequence

    normalizer = tokenizer.backend_tokenizer.normalizer
    tokenizer.backend_tokenizer.normalizer = Sequence([Lowercase(), *([normalizer] if normalizer is not None else [])])


def _prompt(folder: Path) -> str:
    facts = _facts(folder / "config_sentence_transformers.json")
    return str((facts.get("prompts") or {}).get(facts.get("default_prompt_name") or "", "") or "")


def _after_backbone(
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
        config = _facts(place / "config.json")
        if name == "WeightedLayerPooling":
            # sentence-transformers leaves the layers alone where the backbone's config keeps them to itself.
            weights = _layer_weights(place, config, layers) if backbone.output_hidden_states else None
        elif name == "Pooling":
            pooling = _pooling(place, config, layers, bool(_prompt(folder)))
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
    if {config.get(f"module_{end}_name") or "sentence_embedding" for end in ("input", "output")} != {"sentence_embedding"}:
        raise InputError(f"{place}: a Dense module on anything but the sentence embedding is not supported.")
    path = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = getattr(nn, path.rsplit(".", 1)[-1], None) if path.startswith("torch.nn.") else None
    if activation is None or not issubclass(activation, nn.Module):
        raise InputError(f"{place}: the activation '{path}' is not one of torch.nn.")
    return _filled(
        place, lambda: Dense(int(config["in_features"]), int(config["out_features"]), bool(config.get("bias", True)), activation())
    )


def read_flow(place: Path) -> Flow:
    config = _facts(place / "config.json")
    return _filled(place, lambda: Flow(**config))


def read_attention(place: Path) -> Attention:
    config = _facts(place / "config.json")
    return _filled(place, lambda: Attention(int(config["width"])))


def read_layer_walk(place: Path) -> LayerWalk:
    try:
        return LayerWalk(**_facts(place / "config.json"))
    except TypeError as error:
        raise InputError(f"{place}: config.json is not one of an SBERT-WK pooling ({_gist(error)}).") from error


def _token_weights(place: Path) -> TokenWeights:
    weights = _weights(place).get("emb_layer.weight")
    if weights is None:
        raise InputError(f"{place}: the weights of the words (emb_layer.weight) are missing.")
    return TokenWeights(weights.squeeze(1))


def _layer_weights(place: Path, config: dict[str, Any], layers: int) -> list[float]:
    weights = [0.0] * int(config.get("layer_start", 4)) + _weights(place)["layer_weights"].tolist()
    if len(weights) != layers + 1:
        raise InputError(f"{place}: weights of {len(weights)} layers were found; the backbone has {layers + 1}, the embeddings included.")
    return weights


def _filled(place: Path, build: Callable[[], ModuleT]) -> ModuleT:
    weights = _weights(place)
    try:
        module = build()
        module.load_state_dict(weights)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{place}: config.json and model.safetensors do not fit together ({_gist(error)}).") from error
    return module


def _weights(place: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError

    file = place / "model.safetensors"
    if not file.is_file():
        raise InputError(f"{place}: model.safetensors is missing (pickled weights are not read).")
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: cannot be read ({_gist(error)}).") from error
