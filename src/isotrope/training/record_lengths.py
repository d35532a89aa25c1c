"""What ``max_length`` means for a run: refused where it leaves no room for a text, and said where it cuts."""

from __future__ import annotations

from isotrope.data.corpus import Corpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError


def check_length(encoder: Encoder, max_length: int) -> None:
    """Refuse a length that special tokens and prompt fill alone: every text would be the same."""
    frame = _frame(encoder)
    if max_length <= frame:
        raise InputError(
            f"max_length must be at least {frame + 1}: the model frames a text with {frame} tokens, and one of its own "
            f"must fit; {max_length} was given."
        )


def length_remarks(encoder: Encoder, corpus: Corpus, max_length: int) -> list[str]:
    """Sentences on a length beyond the model's positions, and on the texts that are cut."""
    found, reads = [], min(max_length, encoder.max_length)
    if max_length > reads:
        found.append(f"max_length {max_length:,} is more than the model reads; texts are cut at {reads:,} tokens.")
    longer, texts = corpus.count_longer(reads - _frame(encoder))
    if longer:
        found.append(
            f"{longer:,} of {texts:,} texts ({longer / texts:.1%}) are longer than {reads:,} tokens "
            "and are cut; raise max_length, or split them into sentences."
        )
    return found


def _frame(encoder: Encoder) -> int:
    """Tokens of a row that are not the text's."""
    tokenizer = encoder.text_tokenizer
    return len(tokenizer.start) + len(tokenizer.prompt_ids) + len(tokenizer.suffix)
