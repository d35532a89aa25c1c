"""A tokenizer of the tokenizers library alone, until somebody asks for more than ids: then it is transformers' own.

The first vector need not wait for the import of transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


class PlainTokenizer:
    """What ``TextTokenizer`` asks of a tokenizer; whatever else is asked is asked of the one that ``make`` gives.

    ``named`` gives the special tokens by role, such as pad_token, as tokenizer_config.json does.
    """

    def __init__(self, backend: Any, named: Mapping[str, Any], make: Callable[[], PreTrainedTokenizerBase]) -> None:
        self.backend_tokenizer = backend
        self._make = make
        self._made: PreTrainedTokenizerBase | None = None
        for role in ROLES:
            token = named.get(f"{role}_token")
            setattr(self, f"{role}_token", token)
            setattr(self, f"{role}_token_id", None if token is None else backend.token_to_id(token))

    @property
    def made(self) -> PreTrainedTokenizerBase | None:
        """Transformers' tokenizer, where it was asked for already."""
        return self._made

    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Transformers' tokenizer; made once."""
        if self._made is None:
            self._made = self._make()
            self.backend_tokenizer = self._made.backend_tokenizer  # tokens that somebody adds are known here too
        return self._made

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of the special tokens, each once, in the order of transformers."""
        found = (getattr(self, f"{role}_token_id") for role in ROLES)
        return list(dict.fromkeys(number for number in found if number is not None))

    def get_vocab(self) -> dict[str, int]:
        found: dict[str, int] = self.backend_tokenizer.get_vocab()
        return found

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size())

    def __call__(self, *texts: Any, **options: Any) -> Any:
        if set(options) <= {"add_special_tokens"} and all(isinstance(text, str) for text in texts) and len(texts) < 3:
            return {"input_ids": self.backend_tokenizer.encode(*texts, **options).ids}
        return self.tokenizer()(*texts, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of a copy that is not filled in yet, too
            raise AttributeError(name)
        return getattr(self.tokenizer(), name)
