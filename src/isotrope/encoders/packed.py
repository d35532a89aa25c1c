"""Weights at a quarter of their size, for the encoders that ship in the package: rows of int8 with a scale each.

    w ≈ scale_row · q,   q ∈ {−127 … 127},   scale_row = max |w_row| / 127

Matrices only; vectors (biases, norms) stay in float16. In memory everything is float32 again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from isotrope.encoders.config_check import check_config
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import MissingHeadError
from isotrope.encoders.parts.static_embedding import check_read_out
from isotrope.encoders.plain_bert import PlainBert
from isotrope.encoders.plain_tokenizer_files import read_plain_tokenizer
from isotrope.encoders.quiet import quiet
from isotrope.encoders.read_out import is_raw, raw_facts
from isotrope.encoders.remote_code import is_trusted
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import REPAIR, loaded_by_others, read_tensors
from isotrope.encoders.stored_tokenizer import check_vocabulary, read_tokenizer
from isotrope.encoders.weights_check import check_size
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.files import write_json, written_folder
from isotrope.tokens.plain_tokenizer import PlainTokenizer
from isotrope.tokens.word_vocabulary import specials_of, word_tokenizer

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
    facts = Fields.of(folder / "isotrope.json")
    if "head" not in facts.facts and not (folder / "config.json").exists():
        return _read_table(folder, pooling, language_head, dict(facts.facts))
    headed, length, stored = facts.flag("head"), facts.count("max_length"), facts.word("pooling")
    if language_head and not headed:
        raise MissingHeadError(f"{folder.name} holds no masked-language head; start from builtin-base.")
    plain = None if language_head else _plain(folder)
    backbone, tokenizer, kept = plain or _whole_model(folder, headed, language_head)
    own = dict(facts.facts)
    return Encoder(
        backbone,
        tokenizer,
        pooling or stored,
        max_length=length,
        facts=raw_facts(own, pooling) if is_raw(own) else own,
        language_model=kept,
    )


def _plain(folder: Path) -> tuple[Any, Any, None] | None:
    """Backbone and tokenizer without transformers; None where the folder is not of the plain shape, or is damaged."""
    tokenizer = read_plain_tokenizer(folder)
    if tokenizer is None:
        return None
    weights = unpack_weights(_whole(folder))
    backbone = PlainBert.of(folder / "config.json", weights, partial(_headless, folder))
    known = backbone is not None and len(tokenizer) == backbone.config.vocab_size
    return (backbone, tokenizer, None) if known else None


def _headless(folder: Path) -> Any:
    """Transformers' model of the folder's config without its weights."""
    from transformers import AutoConfig, AutoModel

    with loaded_by_others(folder / "config.json", "the model"), quiet():
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model = AutoModel.from_config(config, trust_remote_code=False)
    model.pooler = None
    return model


def _whole_model(folder: Path, headed: bool, language_head: bool) -> tuple[Any, Any, Any]:
    """Backbone, tokenizer and, where it is asked for, the backbone with its head."""
    check_config(folder)
    tokenizer = read_tokenizer(folder)
    model = _unpacked(folder, headed)
    check_vocabulary(folder, tokenizer, model)
    if getattr(model.base_model, "pooler", None) is not None:
        model.base_model.pooler = None  # nobody reads it, and it was drawn at random
    return model.base_model, tokenizer, model if headed and language_head else None


def _unpacked(folder: Path, headed: bool) -> Any:
    """The model with its weights; one that the file does not hold, or holds besides, is refused."""
    from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

    weights = unpack_weights(_whole(folder))
    held = sum(weight.numel() for weight in weights.values())
    choose = AutoModelForMaskedLM if headed else AutoModel
    code = {"trust_remote_code": is_trusted(folder)}
    with loaded_by_others(folder / "config.json", "the model"), quiet():
        config = AutoConfig.from_pretrained(folder, local_files_only=True, **code)
        check_size(folder, lambda: choose.from_config(config, **code), held)
        model = choose.from_config(config, **code)
    missing, strange = _misfits(model, weights)
    if missing or strange:
        raise InputError(
            f"{folder / WEIGHTS}: the packed weights do not fit config.json, such as {min(missing or strange)}; "
            f"{REPAIR}."
        )
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    return model


def _whole(folder: Path) -> dict[str, Tensor]:
    """The packed tensors, each matrix with its scale."""
    packed = read_tensors(folder, WEIGHTS)
    for name, tensor in packed.items():
        if tensor.dtype == torch.int8 and packed.get(name + SCALE, tensor).shape != tensor.shape[:1]:
            raise InputError(f"{folder / WEIGHTS}: {name} has no scale for each of its rows; {REPAIR}.")
    return packed


def _misfits(model: Any, weights: dict[str, Tensor]) -> tuple[set[str], set[str]]:
    """Names of weights that the model needs, or has in another size; names of weights that it does not know."""
    own = {name: tensor.shape for name, tensor in model.state_dict().items()}
    wrong = {name for name, shape in own.items() if name in weights and weights[name].shape != shape}
    drawn = {name for name, _ in model.named_parameters() if name not in weights and not name.startswith("pooler.")}
    return (drawn - _tied(model)) | wrong, weights.keys() - own.keys()


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
    weights = unpack_weights(_whole(folder))
    if TABLE not in weights:
        raise InputError(f"{folder / WEIGHTS}: {TABLE}, the table of word vectors, is not in it; {REPAIR}.")
    with loaded_by_others(folder / "tokenizer.json", "the tokenizer"):
        backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer = PlainTokenizer(backend, specials_of(backend), partial(word_tokenizer, backend))
    return Encoder(StaticVectors(weights[TABLE]), tokenizer, facts=facts)


def _tied(model: Any) -> set[str]:
    """Names of the weights that are another weight's, and so not stored."""
    return set(getattr(model, "_tied_weights_keys", None) or ())
