"""The tokenizer of a model folder: its files are checked, and what comes of them fits the model's table of embeddings.

Without its files transformers makes an empty tokenizer, and every word becomes the unknown one: vectors that look like
vectors. So a missing file is refused, and so is a vocabulary that is not the model's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isotrope.encoders.quiet import quiet
from isotrope.encoders.remote_code import is_trusted
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import REPAIR, loaded_by_others, read_facts
from isotrope.errors import InputError

TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
CONFIG = "tokenizer_config.json"
FACTS = ("tokenizer.json", CONFIG, "special_tokens_map.json", "added_tokens.json")


def read_tokenizer(folder: Path) -> Any:
    """The folder's tokenizer, with a padding token."""
    from transformers import AutoTokenizer

    present = [name for name in TOKENIZER_FILES if (folder / name).is_file()]
    if not present:
        raise InputError(f"{folder}: the tokenizer is missing; one of {', '.join(TOKENIZER_FILES)} was expected.")
    if "tokenizer.json" not in present and "vocab.json" in present and not (folder / "merges.txt").is_file():
        raise InputError(f"{folder}: vocab.json stands there without merges.txt; copy the tokenizer again.")
    facts = {name: Fields(folder / name, read_facts(folder / name)) for name in FACTS}
    if facts[CONFIG].facts.get("model_max_length") is not None:
        facts[CONFIG].number("model_max_length", 1)
    with loaded_by_others(folder, "the tokenizer"), quiet():
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=is_trusted(folder))
        if tokenizer.pad_token is None:  # GPT-2 has none; padding is masked, so any special token will do
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.bos_token
        tokenizer("a")  # one that loads and cannot cut a text is no tokenizer
    if getattr(tokenizer, "truncation_side", "right") == "left":
        raise InputError(
            f"{folder / CONFIG}: truncation_side is left, and isotrope keeps the beginning of a long text; set it to "
            "right if that suits the model."
        )
    if tokenizer.pad_token is None:
        raise InputError(
            f"{folder / CONFIG}: the tokenizer has no padding token, and no special token that could serve as one; "
            "name one as pad_token."
        )
    return tokenizer


def check_vocabulary(folder: Path, tokenizer: Any, model: Any) -> None:
    """Refuse a tokenizer whose tokens the model has no rows for, or which knows less than half of the rows."""
    rows = getattr(model.get_input_embeddings(), "num_embeddings", None)
    if rows is None:
        return
    numbers = tokenizer.get_vocab().values()
    file = folder / next((name for name in TOKENIZER_FILES if (folder / name).is_file()), "")
    last = max(numbers, default=-1)
    if last >= rows:
        raise InputError(
            f"{file}: the tokenizer has a token of number {last:,}, and the model's table has {rows:,} rows; take the "
            "tokenizer that the model was trained with."
        )
    if 2 * len(numbers) < rows:
        raise InputError(
            f"{file}: the tokenizer has {len(numbers):,} tokens, and the model's table has {rows:,} rows; take the "
            f"tokenizer that the model was trained with, or {REPAIR}."
        )
