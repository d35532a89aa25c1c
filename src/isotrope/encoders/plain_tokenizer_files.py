"""BERT's tokenizer read from its files without transformers, where they say all of it in the plain way."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from isotrope.encoders.stored_tokenizer import CONFIG, read_tokenizer
from isotrope.tokens.plain_tokenizer import ROLES, PlainTokenizer

CLASSES = ("BertTokenizer", "BertTokenizerFast")
# Transformers builds the normalizer of this class from its own settings, whatever tokenizer.json says.
NORMALIZER = {"lowercase": "do_lower_case", "strip_accents": "strip_accents"}
NORMALIZER |= {"handle_chinese_chars": "tokenize_chinese_chars"}


def read_plain_tokenizer(folder: Path) -> PlainTokenizer | None:
    """The folder's tokenizer; None where transformers might make another one of the same files, or refuse them."""
    from tokenizers import Tokenizer

    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        written = (folder / "tokenizer.json").read_text(encoding="utf-8")
        backend = Tokenizer.from_str(written)
        normalizer = json.loads(backend.normalizer.__getstate__())
        plain = (
            config["tokenizer_class"] in CLASSES
            and "auto_map" not in config
            and normalizer["type"] == "BertNormalizer"
            and all(normalizer[name] == config[setting] for name, setting in NORMALIZER.items())
            and not ({"added_tokens_decoder", "additional_special_tokens", "extra_special_tokens"} & config.keys())
            and all(_is_known(backend, config.get(f"{role}_token")) for role in ROLES)
            and config.get("pad_token") is not None
        )
    except Exception:  # whatever is wrong with the files is said by the reader that checks them
        return None
    return PlainTokenizer(backend, config, partial(read_tokenizer, folder)) if plain else None


def _is_known(backend: Any, token: Any) -> bool:
    return token is None or (isinstance(token, str) and backend.token_to_id(token) is not None)
