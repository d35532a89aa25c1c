"""A table of word vectors on disk: StaticEmbedding of sentence-transformers.

The folder holds model.safetensors (``embedding.weight``) and tokenizer.json. A table of concepts keeps the matrices of
its relations in the same file, where other readers pass them over.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from isotrope.encoders.language_head import MissingHeadError
from isotrope.encoders.parts.part import Backbone, Part
from isotrope.encoders.stored_files import REPAIR, TENSORS, gist
from isotrope.encoders.word_vectors import ENDLESS, Concepts, StaticVectors
from isotrope.errors import InputError
from isotrope.tokens.word_vocabulary import bare_tokenizer, word_tokenizer

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.encoder import Encoder

TOKENIZER = "tokenizer.json"
CUT = {"direction": "Right", "strategy": "LongestFirst", "stride": 0}


class StaticEmbedding(Backbone):
    """The table and its tokenizer; no layers, no language head, and the mean as its only read-out."""

    type_name = "StaticEmbedding"
    own_pooling = "mean"

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        backbone: Any = encoder.backbone
        if not isinstance(backbone, StaticVectors):
            return None
        if encoder.pooling.modes != (cls.own_pooling,) or encoder.token_weights is not None:
            raise InputError("A table of vectors is saved with its plain mean, the only pooling that its format knows.")
        return cls(backbone, encoder.tokenizer, max_length=encoder.max_length)

    def write(self, place: Path) -> None:
        tensors = {"embedding.weight": self.backbone.table.weight.detach().cpu().contiguous()}
        names = {}
        if isinstance(self.backbone, Concepts):
            tensors["relations"] = self.backbone.matrices.detach().cpu().contiguous()
            names["relations"] = json.dumps(self.backbone.relations)
        save_file(tensors, place / TENSORS, metadata=names)
        facts = json.loads(self.tokenizer.backend_tokenizer.to_str())
        facts["truncation"] = None if self.max_length in (None, ENDLESS) else {**CUT, "max_length": self.max_length}
        (place / TOKENIZER).write_text(json.dumps(facts, ensure_ascii=False, indent=2), encoding="utf-8")

    @classmethod
    def open(cls, place: Path, pooling: str | None, language_head: bool) -> Self:
        check_read_out(place, pooling, language_head)
        table, tokenizer, max_length = _table_and_tokenizer(place)
        return cls(table, tokenizer, max_length=max_length)


def check_read_out(place: Path, pooling: str | None, language_head: bool) -> None:
    """Refuse what a table of word vectors cannot have."""
    if language_head:
        raise MissingHeadError(
            f"{place}: a table of word vectors has no language head; start from a transformer, such as builtin-base."
        )
    if pooling not in (None, StaticEmbedding.own_pooling):
        raise InputError(f"{place}: a table of word vectors is read out by its mean; '{pooling}' was asked for.")


def _table_and_tokenizer(place: Path) -> tuple[StaticVectors, Any, int | None]:
    from tokenizers import Tokenizer

    for name in (TENSORS, TOKENIZER):
        if not (place / name).is_file():
            raise InputError(f"{place}: {name} is missing.")
    try:
        with safe_open(place / TENSORS, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            names = json.loads((file.metadata() or {}).get("relations", "[]"))
        backend = Tokenizer.from_file(str(place / TOKENIZER))
    except SafetensorError as error:
        raise InputError(f"{place}/{TENSORS}: cannot be read ({gist(error)}); {REPAIR}.") from error
    except Exception as error:  # the tokenizers library raises nothing more precise
        raise InputError(f"{place}/{TOKENIZER}: the tokenizer cannot be loaded ({gist(error)}); {REPAIR}.") from error
    vectors = tensors.get("embedding.weight")
    if vectors is None or vectors.dim() != 2 or len(vectors) < backend.get_vocab_size():
        raise InputError(
            f"{place}: {TENSORS} holds no table (embedding.weight) with a row for each token of {TOKENIZER}."
        )
    length = _longest(place, backend)
    vectors, tokenizer = vectors.float(), word_tokenizer(bare_tokenizer(backend))  # nobody frames a text for a mean
    if "relations" not in tensors:
        return StaticVectors(vectors), tokenizer, length
    if tensors["relations"].shape != (len(names), vectors.shape[1], vectors.shape[1]):
        raise InputError(f"{place}: {TENSORS} holds relations that do not fit its table.")
    return Concepts(vectors, names, tensors["relations"].float()), tokenizer, length


def _longest(place: Path, backend: Any) -> int | None:
    """The tokens after which the tokenizer cuts a text; None: it does not."""
    cut = backend.truncation
    if cut is None:
        return None
    if cut["direction"] != "right" or cut["max_length"] < 1:
        raise InputError(
            f"{place / TOKENIZER}: its truncation keeps {cut['max_length']} tokens from the {cut['direction']}, and "
            "isotrope cuts texts at their end; set its direction to Right."
        )
    return int(cut["max_length"])
