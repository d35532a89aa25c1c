"""Tokenizers of whole words: those of a text, and names that are one token each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from isotrope.errors import InputError

PAD, UNKNOWN = "[PAD]", "[UNK]"
SPECIALS = (PAD, UNKNOWN)
EVERY = 1 << 30  # no limit on the size of a vocabulary


def learn_words(texts: Iterable[str], min_count: int) -> Any:
    """A tokenizer of the words (and punctuation) that occur ``min_count`` times or more, in lower case, frequent first.

    Texts are cut as in BERT before the pieces: at blanks and punctuation, and around each Chinese character.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    words = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(
        vocab_size=EVERY, min_frequency=min_count, special_tokens=list(SPECIALS), show_progress=False
    )
    words.train_from_iterator(texts, trainer)
    found = words.get_vocab_size() - len(SPECIALS)
    if found < 2:
        counted = "No word stands" if not found else "One word alone stands"
        raise InputError(f"{counted} {min_count} times or more in the text; lower min_count or bring more text.")
    return word_tokenizer(words)


def name_tokens(names: Iterable[str]) -> Any:
    """A tokenizer in which each name is one token, as it is written, blanks and all."""
    from tokenizers import Tokenizer, models

    vocabulary = {name: number for number, name in enumerate([*SPECIALS, *names])}
    return word_tokenizer(Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN)))


def word_tokenizer(backend: Any) -> Any:
    """A tokenizer of the tokenizers library as a Hugging Face tokenizer, which is what the other rooms take."""
    from transformers import PreTrainedTokenizerFast

    known = backend.get_vocab()
    specials = {"pad_token": PAD, "unk_token": UNKNOWN}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, **{role: token for role, token in specials.items() if token in known}
    )
