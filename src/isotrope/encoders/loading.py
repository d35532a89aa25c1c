"""Read an encoder from a Hugging Face folder, a sentence-transformers folder, the package, or a hub."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modules import after_backbone, gist, modules_of, prompt_of, read_facts
from isotrope.encoders.packed import WEIGHTS, read_packed
from isotrope.encoders.parts.attention import ATTENTION, Attention
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.quiet import quiet
from isotrope.encoders.word_vectors import NAME as STATIC
from isotrope.encoders.word_vectors import read_static
from isotrope.errors import InputError

BUILTIN = ("builtin", "builtin-base")
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]


def load(
    name_or_path: str | os.PathLike[str] = "builtin",
    pooling: str | None = None,
    device: str | torch.device | None = None,
    language_head: bool = False,
) -> Encoder:
    """An encoder ready to use.

    ``pooling`` replaces the one stored with the model; a plain Hugging Face folder, which stores none, gets mean
    pooling. ``language_head`` keeps the masked-language head, for methods that train it.
    """
    encoder = _read(find_folder(str(name_or_path)), pooling, language_head)
    return encoder.to(torch.device(device) if device is not None else default_device()).eval()


def _read(folder: Path, pooling: str | None, language_head: bool) -> Encoder:
    if (folder / WEIGHTS).is_file():
        return read_packed(folder, pooling, language_head)
    parts = modules_of(folder)
    if parts and parts[0][0] == STATIC:
        return _static(folder, parts, pooling, language_head)
    # Folders of the first sentence-transformers keep the backbone in 0_Transformer.
    inner = next((place for name, place in parts if name == "Transformer"), folder)
    _check(inner)
    tokenizer = _tokenizer(inner)
    max_length = _fit_to_config(tokenizer, inner)
    backbone, language_model = _backbone(inner, language_head)
    facts = read_facts(folder / "isotrope.json")
    stored, token_weights, after = after_backbone(folder, parts, backbone.config, str(facts.get("pooling", "")))
    layers = int(backbone.config.num_hidden_layers)
    if isinstance(token_weights, Attention) and pooling not in (None, ATTENTION.name):
        token_weights = None  # another pooling asks no weights
    if pooling is not None and stored is not None and (facts.get("spaces") or token_weights is not None):
        if pooling != stored.name:
            raise InputError(
                f"{folder}: a space was fitted to this model's pooling, '{stored.name}'; load it without another pooling."
            )
        pooling = None
    chosen = Pooling.named(pooling, layers) if pooling is not None else stored or Pooling.named("mean", layers)
    return Encoder(
        backbone, tokenizer, chosen, after, max_length, prompt_of(folder), facts, language_model, token_weights
    )


def _static(folder: Path, parts: list[tuple[str, Path]], pooling: str | None, language_head: bool) -> Encoder:
    """A table of word vectors: no layers, no language head, and a mean."""
    if language_head:
        raise InputError(
            f"{folder}: a table of word vectors has no language head; start from a transformer, such as builtin-base."
        )
    if pooling not in (None, "mean"):
        raise InputError(f"{folder}: a table of word vectors is read out by its mean; '{pooling}' was asked for.")
    backbone, tokenizer = read_static(parts[0][1])
    stored, token_weights, after = after_backbone(folder, parts[1:], backbone.config, "")
    if stored is not None or token_weights is not None:
        raise InputError(
            f"{folder}: modules.json has a pooling behind a table of word vectors, which isotrope does not know."
        )
    return Encoder(backbone, tokenizer, "mean", after, None, prompt_of(folder), read_facts(folder / "isotrope.json"))


def default_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def find_folder(name: str) -> Path:
    """The folder a name stands for; a hub id is fetched once."""
    if name in BUILTIN:
        folder = Path(__file__).parent / "builtin" / name
        if not folder.is_dir():
            raise InputError(
                f"This version of isotrope ships no '{name}' yet; give a model folder or a hub id with --model."
            )
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
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

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
        hint = (
            "only pytorch_model.bin, which is not read for safety; convert it to safetensors"
            if pickled
            else "no model.safetensors"
        )
        raise InputError(f"{folder}: the weights are missing: {hint}.")
    if not files & set(TOKENIZER_FILES):
        raise InputError(f"{folder}: the tokenizer is missing; one of {', '.join(TOKENIZER_FILES)} was expected.")


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        with quiet():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}: the tokenizer cannot be loaded ({gist(error)}).") from error


def _backbone(folder: Path, language_head: bool) -> tuple[Any, Any]:
    from safetensors import SafetensorError
    from transformers import AutoModel, AutoModelForMaskedLM

    choose = AutoModelForMaskedLM if language_head else AutoModel
    settings = {"local_files_only": True, "use_safetensors": True, "dtype": torch.float32}
    try:
        with quiet():
            model, report = choose.from_pretrained(
                folder, ignore_mismatched_sizes=True, output_loading_info=True, **settings
            )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{folder}: the model cannot be loaded ({gist(error)}).") from error
    _check_weights(folder, model, report, language_head)
    if language_head and any(not name.startswith(f"{model.base_model_prefix}.") for name in report["missing_keys"]):
        warnings.warn(
            f"{folder}: the folder holds no masked-language head; a new one is drawn at random and learns from here on.",
            stacklevel=5,
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


def _fit_to_config(tokenizer: Any, folder: Path) -> int | None:
    """What sentence_bert_config.json (or sentence_roberta_config.json …) says of the tokenizer; gives the length to cut
    at.
    """
    configs = [read_facts(file) for file in sorted(folder.glob("sentence_*_config.json"))]
    if any(config.get("do_lower_case") for config in configs):
        _lower_case(tokenizer)
    lengths = [config["max_seq_length"] for config in configs if config.get("max_seq_length")]
    limit = lengths[0] if lengths else tokenizer.model_max_length
    if not isinstance(limit, int | float) or limit < 1:
        raise InputError(f"{folder}: max_seq_length must be a number above 0, not {limit!r}.")
    return int(limit) if limit < 1 << 20 else None  # a tokenizer without a limit says 10³⁰


def _lower_case(tokenizer: Any) -> None:
    from tokenizers.normalizers import Lowercase, Sequence

    normalizer = tokenizer.backend_tokenizer.normalizer
    tokenizer.backend_tokenizer.normalizer = Sequence([Lowercase(), *([normalizer] if normalizer is not None else [])])
