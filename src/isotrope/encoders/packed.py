"""Weights at a quarter of their size, for the encoders that ship in the package: rows of int8 with a scale each.

    w ≈ scale_row · q,   q ∈ {−127 … 127},   scale_row = max |w_row| / 127

Matrices only; vectors (biases, norms) stay in float16. In memory everything is float32 again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import MissingHeadError
from isotrope.encoders.parts.static_embedding import check_read_out
from isotrope.encoders.quiet import quiet
from isotrope.encoders.read_out import RAW, is_raw
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.files import write_json, written_folder
from isotrope.tokens.word_vocabulary import word_tokenizer

WEIGHTS = "packed.safetensors"
SCALE = ".scale"
TABLE = "embedding.weight"


def pack_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 with a float16 scale a row, everything else as float16."""
    packed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        values = tensor.detach().float().cpu()
        if values.dim() == 2:
            scale = (values.abs().amax(dim=1).clamp(min=1e-8) / 127).half()
            packed[name] = (values / scale.float().unsqueeze(1)).round().clamp(-127, 127).to(torch.int8)
            packed[name + SCALE] = scale
        else:
            packed[name] = values.half().contiguous()
    return packed


def unpack_weights(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights in float32 again."""
    return {
        name: tensor.float() * packed[name + SCALE].float().unsqueeze(1)
        if tensor.dtype == torch.int8
        else tensor.float()
        for name, tensor in packed.items()
        if not name.endswith(SCALE)
    }


def write_packed(encoder: Encoder, folder: Path) -> None:
    """Write a folder with packed weights, the tokenizer and the facts, and the masked-language head if there is one."""
    if isinstance(encoder.backbone, StaticVectors):
        _write_table(encoder, encoder.backbone, folder)
        return
    model = encoder.language_model or encoder.backbone
    weights = {name: tensor for name, tensor in model.state_dict().items() if name not in _tied(model)}
    with written_folder(folder) as temporary:
        save_file(pack_weights(weights), temporary / WEIGHTS)
        with quiet():
            model.config.save_pretrained(temporary)
            encoder.tokenizer.save_pretrained(temporary)
        facts = {
            **encoder.facts,
            "pooling": encoder.pooling.name,
            "max_length": encoder.max_length,
            "head": encoder.language_model is not None,
        }
        write_json(temporary / "isotrope.json", facts)


def read_packed(folder: Path, pooling: str | None, language_head: bool) -> Encoder:
    """The encoder of a packed folder, in float32."""
    from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer

    facts = json.loads((folder / "isotrope.json").read_text(encoding="utf-8"))
    if not (folder / "config.json").is_file():
        return _read_table(folder, pooling, language_head, facts)
    if language_head and not facts["head"]:
        raise MissingHeadError(f"{folder.name} holds no masked-language head; start from builtin-base.")
    weights = unpack_weights(load_file(folder / WEIGHTS))
    with quiet():
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = (AutoModelForMaskedLM if facts["head"] else AutoModel).from_config(config)
    report = model.load_state_dict(weights, strict=False)
    model.tie_weights()
    drawn = {name for name in report.missing_keys if not name.startswith("pooler.")} - _tied(model)
    if drawn or report.unexpected_keys:
        raise InputError(
            f"{folder}: the packed weights do not fit config.json, such as {min(drawn or report.unexpected_keys)}."
        )
    if getattr(model.base_model, "pooler", None) is not None:
        model.base_model.pooler = None  # nobody reads it, and it was drawn at random
    kept = model if facts["head"] and language_head else None
    return Encoder(
        model.base_model,
        tokenizer,
        pooling or facts["pooling"],
        max_length=facts["max_length"],
        facts={**facts, RAW: pooling is None} if is_raw(facts) else facts,
        language_model=kept,
    )


def _write_table(encoder: Encoder, table: StaticVectors, folder: Path) -> None:
    """Of a table of word vectors: its rows and its tokenizer; there is no config.json."""
    if len(encoder.parts):
        raise InputError("A table with modules after its mean cannot be packed.")
    with written_folder(folder) as temporary:
        save_file(pack_weights({TABLE: table.table.weight}), temporary / WEIGHTS)
        encoder.tokenizer.backend_tokenizer.save(str(temporary / "tokenizer.json"), pretty=False)
        write_json(temporary / "isotrope.json", {**encoder.facts, "pooling": encoder.pooling.name})


def _read_table(folder: Path, pooling: str | None, language_head: bool, facts: dict[str, Any]) -> Encoder:
    from tokenizers import Tokenizer

    check_read_out(Path(folder.name), pooling, language_head)
    table = unpack_weights(load_file(folder / WEIGHTS))[TABLE]
    tokenizer = word_tokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")))
    return Encoder(StaticVectors(table), tokenizer, facts=facts)


def _tied(model: Any) -> set[str]:
    """Names of the weights that are another weight's, and so not stored."""
    return set(getattr(model, "_tied_weights_keys", None) or ())
