"""A new, untrained encoder for a text of one's own: a WordPiece vocabulary and a small BERT."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def fresh_encoder(
    texts: Iterable[str],
    vocabulary: int = 8192,
    layers: int = 4,
    width: int = 256,
    heads: int = 4,
    max_length: int = 128,
    seed: int = 42,
) -> Encoder:
    """An encoder with random weights and its masked-language head; train it with the method ``mlm`` first."""
    from tokenizers.implementations import BertWordPieceTokenizer
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    pieces = BertWordPieceTokenizer(lowercase=True)
    pieces.train_from_iterator(texts, vocab_size=vocabulary, special_tokens=SPECIALS, show_progress=False)
    if pieces.get_vocab_size() < len(SPECIALS) + 26:
        raise InputError("The text is too small to learn a vocabulary from; bring more of it.")
    tokenizer = BertTokenizerFast(tokenizer_object=pieces._tokenizer, model_max_length=max_length)
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
