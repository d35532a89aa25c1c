"""config.json before a model is built from it: every number is one, in its range, and the numbers fit each other.

transformers takes most values as they come: a string for a width fails deep inside torch, a missing model_type is
guessed from the folder's name. Names differ from family to family (hidden_size, dim, n_embd); a field that a family
does not have is not asked for. A config of trusted code has fields of its own and is left to that code.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from isotrope.encoders.remote_code import check_code, is_trusted
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import REPAIR
from isotrope.errors import InputError

WIDTHS = ("hidden_size", "dim", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_heads", "n_head", "num_heads")
LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
TABLES = ("vocab_size", "max_position_embeddings", "n_positions")
OTHERS = ("intermediate_size", "hidden_dim", "d_ff", "embedding_size")
HEAD_WIDTHS = ("head_dim", "d_kv", "d_head", "attention_head_size")  # where one stands, heads need not divide the width
MAY_BE_NULL = ("embedding_size", "hidden_dim", "max_position_embeddings", *HEAD_WIDTHS)
SMALL = ("layer_norm_eps", "layer_norm_epsilon", "norm_eps", "rms_norm_eps")
ACTIVATIONS = ("hidden_act", "activation", "activation_function")
IMPLEMENTATIONS = ("attn_implementation", "_attn_implementation", "experts_implementation")
MOST_LAYERS, MOST_TOKENS = 1000, 1 << 28


def check_config(folder: Path) -> Fields:
    """The fields of config.json; what no model can be built from is refused."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: no config.json; this is not a model folder.")
    if (folder / "adapter_config.json").is_file():
        raise InputError(
            f"{folder / 'adapter_config.json'}: this folder holds an adapter of another model; merge it into that "
            "model and save the whole."
        )
    config = Fields.of(folder / "config.json")
    _check_kind(folder, config)
    if not is_trusted(folder):
        _check_numbers(config)
        _check_words(config)
        _check_heads(config)
    return config


def check_reads_text(folder: Path, model: Any) -> None:
    """Refuse a model that is built and takes something else than token ids, such as images."""
    if "input_ids" not in inspect.signature(model.forward).parameters:
        raise InputError(
            f"{folder / 'config.json'}: a {model.config.model_type} model does not read text; give a language model."
        )


def _check_kind(folder: Path, config: Fields) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    kind = config.facts.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise config.refusal("model_type", "the name of a family, such as bert,")
    known = kind in CONFIG_MAPPING_NAMES
    check_code(folder, known)
    if not known and not is_trusted(folder):
        raise InputError(f"{config.file}: transformers knows no model_type '{kind}'; take a newer one, or {REPAIR}.")
    if config.facts.get("is_encoder_decoder") and not has_own_encoder(kind):
        raise InputError(
            f"{config.file}: {kind} is an encoder-decoder, whose states are those of a decoder; take a model "
            "that is an encoder or a decoder, or a T5, whose encoder can be taken alone."
        )


def has_own_encoder(kind: str) -> bool:
    """Whether transformers has the encoder half of this encoder-decoder as a model: T5 and its kin."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES

    return MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.get(kind, "").endswith("EncoderModel")


def _check_numbers(config: Fields) -> None:
    given = {name for name, value in config.facts.items() if value is not None or name not in MAY_BE_NULL}
    for name in given & {*WIDTHS, *HEADS, *OTHERS, *HEAD_WIDTHS}:
        if not isinstance(config.facts[name], list) or name not in OTHERS:  # some families give a width for each layer
            config.count(name)
    for name in given & {*LAYERS}:
        config.count(name, most=MOST_LAYERS)
    for name in given & {*TABLES}:
        config.count(name, most=MOST_TOKENS)
    for name in given & {*SMALL}:
        config.number(name, 0, 1)
    for name in given:
        if name.endswith(("dropout", "dropout_prob", "pdrop")) and not isinstance(config.facts[name], bool | None):
            config.number(name, 0, 1)
    pad = config.facts.get("pad_token_id")
    if pad is not None and "vocab_size" in given:
        config.count("pad_token_id", least=-1, most=config.count("vocab_size") - 1)


def _check_words(config: Fields) -> None:
    from transformers.activations import ACT2FN

    for name in ACTIVATIONS:
        if name in config.facts and config.word(name) not in ACT2FN:
            raise config.refusal(name, "an activation that transformers knows, such as gelu,")
    for name in IMPLEMENTATIONS:
        if "/" in str(config.facts.get(name) or ""):
            raise config.refusal(name, "eager or sdpa (a kernel from a hub is code, which is not run)")
    if config.facts.get("quantization_config"):
        raise config.refusal("quantization_config", "a model in floating point (quantised weights are not read)")


def _check_heads(config: Fields) -> None:
    width, heads = (next((name for name in names if name in config.facts), None) for names in (WIDTHS, HEADS))
    if width is None or heads is None or any(config.facts.get(name) for name in HEAD_WIDTHS):
        return
    if config.count(width) % config.count(heads):
        raise config.refusal(heads, f"a number that divides {width} ({config.count(width)})")
