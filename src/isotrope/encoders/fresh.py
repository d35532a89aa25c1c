"""An encoder initialised from scratch for a text of one's own: a WordPiece vocabulary and a small BERT.

Use it where no pre-trained model knows the language or the domain; elsewhere start from one that exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ALPHABET = 1000  # letters; rarer ones become [UNK]


def fresh_encoder(
    texts: Iterable[str],
    vocabulary: int = 8192,
    layers: int = 4,
    width: int = 256,
    heads: int = 4,
    max_length: int = 128,
    seed: int = 42,
    tokenizer: Any = None,
) -> Encoder:
    """An encoder with random weights and its masked-language head; its vectors mean nothing before it is trained.

    The vocabulary is learned from ``texts``, unless the tokenizer of another encoder is given.
    """
    from transformers import BertConfig, BertForMaskedLM

    tokenizer = tokenizer or _learned_tokenizer(texts, vocabulary, max_length)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForMaskedLM(
            BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                intermediate_size=4 * width,
                max_position_embeddings=max_length,
                pad_token_id=tokenizer.pad_token_id,
            )
        )
    return Encoder(model.bert, tokenizer, "mean", max_length=max_length, language_model=model)


def _learned_tokenizer(texts: Iterable[str], vocabulary: int, max_length: int) -> Any:
    from tokenizers.implementations import BertWordPieceTokenizer
    from transformers import BertTokenizerFast

    pieces = BertWordPieceTokenizer(vocab=_word_pieces(list(texts), vocabulary), lowercase=True)
    if pieces.get_vocab_size() < len(SPECIALS) + 26:
        raise InputError("The text is too small to learn a vocabulary from; bring more of it.")
    return BertTokenizerFast(tokenizer_object=pieces._tokenizer, model_max_length=max_length)


def _word_pieces(texts: list[str], size: int) -> dict[str, int]:
    """The vocabulary of some texts, the same each time.

    The trainer numbers the inner letters (##a) in the order of a hash table, and that number decides between pieces of
    equal count; given as if they were special tokens, they are numbered in our order.
    """
    from tokenizers.implementations import BertWordPieceTokenizer

    trainer = BertWordPieceTokenizer(lowercase=True)
    chunks: Counter[str] = Counter()
    for text in texts:
        chunks.update(trainer.normalizer.normalize_str(text).split())
    first, inner = _letters(chunks, trainer.pre_tokenizer.pre_tokenize_str)
    letters = sorted(sorted(first | inner), key=lambda letter: -(first[letter] + inner[letter]))[:ALPHABET]
    pinned = [*SPECIALS, *(f"##{letter}" for letter in sorted(letters) if letter in inner)]
    trainer.train_from_iterator(
        texts,
        vocab_size=size,
        special_tokens=pinned,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        show_progress=False,
    )
    return trainer.get_vocab()


def _letters(
    chunks: Counter[str], split: Callable[[str], list[tuple[str, tuple[int, int]]]]
) -> tuple[Counter[str], Counter[str]]:
    """How often each letter begins a word, and how often it stands inside one."""
    first: Counter[str] = Counter()
    inner: Counter[str] = Counter()
    for chunk, count in chunks.items():
        for word, _ in split(chunk):
            first[word[0]] += count
            for letter in word[1:]:
                inner[letter] += count
    return first, inner
