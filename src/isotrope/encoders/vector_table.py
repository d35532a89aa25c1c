"""A text file of word vectors as an encoder: the mean of the vectors of the words that the file has.

    v = (1/n) Σ u_w, over the n words of the text that are in the table

Use it for the baseline that every table of the field begins with: GloVe, word2vec or fastText, averaged. Words that
the table does not have do not count, as in SentEval; a text of such words alone is zero. ``save`` writes a folder that
loads at once, here and in sentence-transformers, where a large text file takes seconds.
"""

from __future__ import annotations

from pathlib import Path

import torch

from isotrope.data.vector_files import read_word_vectors
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.static_embedding import check_read_out
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.tokens.word_vocabulary import table_words


def read_table(file: Path, pooling: str | None, language_head: bool) -> Encoder:
    """The encoder of a file of vectors; it has one read-out, the mean."""
    check_read_out(file, pooling, language_head)
    words, table = read_word_vectors(file, before=1)  # a row for padding
    return Encoder(StaticVectors(torch.from_numpy(table)), table_words(words))
