"""A Hugging Face model and its tokenizer: the backbone of nearly every folder, and the whole of a plain one.

Weights are read from safetensors only, and a weight that the folder does not hold is refused: transformers would draw
it at random.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isotrope.encoders.language_head import NewHeadWarning
from isotrope.encoders.parts.part import Backbone, Part
from isotrope.encoders.quiet import quiet
from isotrope.encoders.stored_files import gist, read_facts
from isotrope.errors import InputError
from isotrope.files import write_json

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.encoder import Encoder

TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")


class Transformer(Backbone):
    """config.json, model.safetensors, the tokenizer's files, and the length at which texts are cut."""

    type_name = "Transformer"
    all_layers = False  # whether config.json asks for the states of every layer, as a mix of layers needs

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        if not hasattr(encoder.backbone, "save_pretrained"):
            return None
        part = cls(encoder.backbone, encoder.tokenizer, encoder.language_model, encoder.max_length)
        part.all_layers = encoder.pooling.needs_all_layers
        return part

    def write(self, place: Path) -> None:
        model = self.language_model or self.backbone
        before = model.config.output_hidden_states
        model.config.output_hidden_states = self.all_layers
        try:
            with quiet():
                model.save_pretrained(place)
        finally:
            model.config.output_hidden_states = before
        self.tokenizer.save_pretrained(place)
        write_json(place / "sentence_bert_config.json", {"max_seq_length": self.max_length, "do_lower_case": False})

    @classmethod
    def open(cls, place: Path, pooling: str | None, language_head: bool) -> Self:
        _check_files(place)
        tokenizer = _tokenizer(place)
        max_length = _fit_to_config(tokenizer, place)
        return cls(*_models(place, tokenizer, language_head), max_length)


def _check_files(folder: Path) -> None:
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
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}: the tokenizer cannot be loaded ({gist(error)}).") from error
    if tokenizer.pad_token is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token  # GPT-2 has none; padding is masked, so any token will do
    return tokenizer


def _models(folder: Path, tokenizer: Any, language_head: bool) -> tuple[Any, Any, Any]:
    """The backbone, the tokenizer, and the backbone with its language head where that is asked for."""
    from safetensors import SafetensorError
    from transformers import AutoModel

    settings = {"local_files_only": True, "use_safetensors": True, "dtype": torch.float32}
    try:
        with quiet():
            choose = _headed(folder) if language_head else AutoModel
            model, report = choose.from_pretrained(
                folder, ignore_mismatched_sizes=True, output_loading_info=True, **settings
            )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{folder}: the model cannot be loaded ({gist(error)}).") from error
    _check_weights(folder, model, report, language_head)
    if language_head and any(not name.startswith(f"{model.base_model_prefix}.") for name in report["missing_keys"]):
        warnings.warn(
            f"{folder}: the folder holds no language head; a new one is drawn at random and trained from here.",
            NewHeadWarning,
            stacklevel=6,
        )
    return (model.base_model, tokenizer, model) if language_head else (model, tokenizer, None)


def _headed(folder: Path) -> Any:
    """The class with a language head: a masked one, or a causal one for models that know no other (GPT-2)."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind = AutoConfig.from_pretrained(folder, local_files_only=True).model_type
    causal = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return AutoModelForCausalLM if causal else AutoModelForMaskedLM


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
            f"{folder}: the weights do not fit config.json: {len(wrong)} tensors are missing or of another size, "
            f"such as {wrong[0]}."
        )


def _fit_to_config(tokenizer: Any, folder: Path) -> int | None:
    """Apply sentence_bert_config.json (or sentence_roberta_config.json …); gives the length to cut texts at."""
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
