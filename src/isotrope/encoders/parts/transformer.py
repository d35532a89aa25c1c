"""A Hugging Face model and its tokenizer: the backbone of nearly every folder, and the whole of a plain one.

Weights are read from safetensors only, and a weight that the folder does not hold is refused: transformers would draw
it at random.
"""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isotrope.encoders.config_check import check_config, check_reads_text, has_own_encoder
from isotrope.encoders.language_head import NEW_HEAD, NewHeadWarning
from isotrope.encoders.parts.part import Backbone, Part
from isotrope.encoders.quiet import quiet
from isotrope.encoders.remote_code import is_trusted
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import loaded_by_others, read_facts
from isotrope.encoders.stored_tokenizer import check_vocabulary, read_tokenizer
from isotrope.encoders.weights_check import check_size, check_weights, weight_files
from isotrope.errors import InputError
from isotrope.files import write_json

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.encoder import Encoder

LAYER = re.compile(r"\.\d+\.")
# What newer sentence-transformers may say of a Transformer, and the one value that is read here.
TASK, STATES, OUTPUT = (
    "feature-extraction",
    "token_embeddings",
    {"method": "forward", "method_output_name": "last_hidden_state"},
)
LENGTHS = ("query_length", "document_length", "query_expansion")


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
        side, self.tokenizer.padding_side = self.tokenizer.padding_side, "right"
        try:  # as rows are padded here; positions that count from the left would move others' vectors
            self.tokenizer.save_pretrained(place)
        finally:
            self.tokenizer.padding_side = side
        # A pooler that nobody reads is not kept; other readers must not look for it, or they draw one and say so.
        unpooled = {"model_args": {"add_pooling_layer": False}} if _has_no_pooler(self.backbone) else {}
        facts = {"max_seq_length": self.max_length, "do_lower_case": False, **unpooled}
        write_json(place / "sentence_bert_config.json", facts)

    @classmethod
    def open(cls, place: Path, pooling: str | None, language_head: bool) -> Self:
        check_config(place)
        weight_files(place)
        tokenizer = read_tokenizer(place)
        max_length = _fit_to_config(tokenizer, place)
        return cls(*_models(place, tokenizer, language_head), max_length)


def _has_no_pooler(backbone: Any) -> bool:
    """Whether the class of the backbone can have a pooler, and this one has none."""
    takes = "add_pooling_layer" in inspect.signature(type(backbone).__init__).parameters
    return takes and getattr(backbone, "pooler", None) is None


def _models(folder: Path, tokenizer: Any, language_head: bool) -> tuple[Any, Any, Any]:
    """The backbone, the tokenizer, and the backbone with its language head where that is asked for."""
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding

    code = {"local_files_only": True, "trust_remote_code": is_trusted(folder)}
    held = check_weights(folder)
    with loaded_by_others(folder / "config.json", "the model"), quiet():
        config = AutoConfig.from_pretrained(folder, **code)
        half = has_own_encoder(config.model_type)
        language_head = language_head and not half  # the head of a T5 follows its decoder
        choose = AutoModelForTextEncoding if half else _headed(config.model_type) if language_head else AutoModel
        check_size(folder, lambda: choose.from_config(config, trust_remote_code=is_trusted(folder)), held)
        model, report = choose.from_pretrained(
            folder,
            config=config,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            use_safetensors=True,
            dtype=torch.float32,
            **code,
        )
    check_reads_text(folder, model)
    _check_weights(folder, model, report, language_head)
    check_vocabulary(folder, tokenizer, model)
    if language_head and any(not name.startswith(f"{model.base_model_prefix}.") for name in report["missing_keys"]):
        warnings.warn(
            f"{folder}: the folder holds no language head; a new one is drawn at random and trained from here.",
            NewHeadWarning,
            stacklevel=6,
        )
        setattr(model, NEW_HEAD, True)
    return (model.base_model, tokenizer, model) if language_head else (model, tokenizer, None)


def _headed(kind: str) -> Any:
    """The class with a language head: a masked one, or a causal one for models that know no other (GPT-2)."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

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
    further = _further_layers(model, report["unexpected_keys"])
    if further:
        raise InputError(
            f"{folder / 'config.json'}: the weights hold more layers than the config says, such as {further[0]}; set "
            "the number of layers to that of the weights."
        )


def _further_layers(model: Any, unexpected: Any) -> list[str]:
    """Weights that nobody asked for and whose sisters in other layers are read: the model would be cut short."""
    prefix = f"{model.base_model_prefix}."
    own = {LAYER.sub(".0.", name.removeprefix(prefix)) for name in model.state_dict()}
    return sorted(
        name for name in unexpected if LAYER.search(name) and LAYER.sub(".0.", name.removeprefix(prefix)) in own
    )


def _fit_to_config(tokenizer: Any, folder: Path) -> int | None:
    """Apply sentence_bert_config.json (or sentence_roberta_config.json …); gives the length to cut texts at."""
    configs = [Fields(file, read_facts(file)) for file in sorted(folder.glob("sentence_*_config.json"))]
    for config in configs:
        _check_use(config)
    if any(config.flag("do_lower_case", False) for config in configs):
        _lower_case(tokenizer, folder)
    given = [config for config in configs if config.facts.get("max_seq_length") is not None]
    if given:
        return given[0].count("max_seq_length")
    limit = Fields(folder / "tokenizer_config.json", {"model_max_length": tokenizer.model_max_length}).number(
        "model_max_length", 1
    )
    return int(limit) if limit < 1 << 20 else None  # a tokenizer without a limit says 10³⁰


def _check_use(config: Fields) -> None:
    """Refuse a Transformer that gives something else than the last states of a text cut at one length."""
    facts = config.facts
    modes, given = facts.get("modality_config") or {"text": OUTPUT}, facts.get("processing_kwargs") or {}
    known = {
        "transformer_task": facts.get("transformer_task") in (None, TASK),
        "module_output_name": facts.get("module_output_name") in (None, STATES),
        "modality_config": isinstance(modes, dict) and modes.get("text") == OUTPUT,
        "processing_kwargs": isinstance(given, dict) and not given.get("text") and not given.get("common"),
        **{name: facts.get(name) is None for name in LENGTHS},
    }
    unknown = next((name for name, fits in known.items() if not fits), None)
    if unknown is not None:
        raise InputError(
            f"{config.file}: {unknown} is {facts[unknown]!r}; isotrope reads the last states of tokens, of every text "
            "up to max_seq_length, and does not know such a model."
        )


def _lower_case(tokenizer: Any, folder: Path) -> None:
    from tokenizers.normalizers import Lowercase, Sequence

    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"{folder}: do_lower_case is known for tokenizers with a tokenizer.json alone; write one.")
    normalizer = tokenizer.backend_tokenizer.normalizer
    tokenizer.backend_tokenizer.normalizer = Sequence([Lowercase(), *([normalizer] if normalizer is not None else [])])
