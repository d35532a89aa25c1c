"""Tokenizers of whole words: those of a text, those of a table of vectors, and names that are one token each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from isotrope.errors import InputError

PAD, UNKNOWN = "[PAD]", "[UNK]"
SPECIALS = (PAD, UNKNOWN)
EVERY = 1 << 30  # no limit on the size of a vocabulary
BEGIN = "▁"  # stands before each word of a table, so that no part of an unknown word is one
CASED = 1e-3  # a table with a larger share of capitalised words has them on purpose
RUN = r"[\p{L}\p{M}\p{N}_]+"
# How a table writes contractions, known by a word that every table of English has, and how a text is cut for it.
CUTS = {
    "n't": rf"n't\b|'(?:s|m|d|re|ve|ll)\b|\p{{N}}+(?:[.,]\p{{N}}+)+|{RUN}?(?=n't\b)|{RUN}|\S",  # do n't, as GloVe
    "don't": rf"{RUN}(?:'{RUN})*|\S",
}


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
        raise InputError(too_few_words(found, min_count))
    return word_tokenizer(words)


def too_few_words(found: int, min_count: int) -> str:
    counted = "No word stands" if not found else "One word alone stands"
    return f"{counted} {min_count} times or more in the text; lower min_count or bring more text."


def name_tokens(names: Iterable[str]) -> Any:
    """A tokenizer in which each name is one token, as it is written, blanks and all."""
    from tokenizers import Tokenizer, models

    vocabulary = {name: number for number, name in enumerate([*SPECIALS, *names])}
    return word_tokenizer(Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN)))


def table_words(words: Sequence[str]) -> Any:
    """A tokenizer of the words of a table: word i is token i + 1. A word that is not in the table is no token.

    Texts are cut at blanks and punctuation, and around each Chinese character. Contractions are cut as the table has
    them, and texts are put in lower case where the table is. Hyphenated words are cut: their parts are better known.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    numbers = {PAD: 0} | {BEGIN + word: number for number, word in enumerate(words, 1)}
    # Byte-pair encoding without a single pair: a word is looked up whole, and its letters, where it is unknown, are no
    # words either: they carry ## where a word carries BEGIN. A model of whole words must have an unknown token.
    known = Tokenizer(models.BPE(vocab=numbers, merges=[], ignore_merges=True, continuing_subword_prefix="##"))
    lower = sum(word != word.lower() for word in words) <= CASED * len(words)
    known.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Replace("’", "'"),
            normalizers.BertNormalizer(lowercase=lower, strip_accents=False),
        ]
    )
    cut = next((cut for sign, cut in CUTS.items() if BEGIN + sign in numbers), rf"{RUN}|\S")
    known.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(Regex(f"(?i:{cut})"), "isolated"),
            pre_tokenizers.Metaspace(BEGIN, "always"),
        ]
    )
    return word_tokenizer(known)


def bare_tokenizer(backend: Any) -> Any:
    """A copy that puts no special tokens around a text, and neither cuts nor pads it: for a mean of token vectors."""
    from tokenizers import Tokenizer

    facts = json.loads(backend.to_str())
    return Tokenizer.from_str(json.dumps({**facts, "post_processor": None, "truncation": None, "padding": None}))


def word_tokenizer(backend: Any) -> Any:
    """A tokenizer of the tokenizers library as a Hugging Face tokenizer, which is what the other rooms take."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=backend, **specials_of(backend))


def specials_of(backend: Any) -> dict[str, str]:
    """The special tokens of such a tokenizer by their role."""
    specials = {"pad_token": PAD, "unk_token": UNKNOWN}
    return {role: token for role, token in specials.items() if backend.token_to_id(token) is not None}
