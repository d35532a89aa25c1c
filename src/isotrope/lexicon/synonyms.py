"""Words and their synonyms: WordNet's as a plain table, and any such table in ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.lexicon.wordnet import WordNet, wordnet_folder
from isotrope.tokens.text_tokenizer import TextTokenizer

Entries = Mapping[bytes, Sequence[npt.NDArray[np.int32]]]  # the ids of a word, as bytes → the ids of each synonym


def read_synonyms(folder: Path | None = None, senses: int | None = 1) -> dict[str, list[str]]:
    """Each word of WordNet and the words it shares a sense with, sorted.

    For each part of speech the ``senses`` most frequent senses count; None: all, as in EDA and CLINE, where "dog" may
    become "andiron". Only base forms are there ("dog", not "dogs"), and no key is a name: "an" would become "Associate
    in Nursing" (AN). ``open_lexicon`` inflects and knows parts of speech, which this table does not.
    """
    found: dict[str, set[str]] = {}
    for entry in WordNet(folder or wordnet_folder()).entries(senses):
        for synset in entry.senses:
            found.setdefault(entry.word, set()).update(synset.words)
    return {word: sorted(others - {word}) for word, others in found.items() if len(others) > 1}


def tokenize_synonyms(table: Mapping[str, Sequence[str]], tokenizer: TextTokenizer) -> Entries:
    """The table in ids.

    A key that the tokenizer splits into several words is left out, and so is every word with letters that the
    vocabulary does not know. A vocabulary that marks blanks writes the first word of a text otherwise than the same
    word later: both have an entry.
    """
    rows = {key: synonyms for key, synonyms in table.items() if " " not in key}
    distinct = list(dict.fromkeys(word for key, synonyms in rows.items() for word in (key, *synonyms)))
    marks_blanks = tokenizer.flat(["a"])[0].tolist() != tokenizer.flat([" a"])[0].tolist()
    entries: dict[bytes, list[npt.NDArray[np.int32]]] = {}
    for before in ("", " ") if marks_blanks else ("",):
        pieces = _pieces(distinct, before, tokenizer)
        for key, synonyms in rows.items():
            word = pieces.get(key)
            if word is not None and len(tokenizer.words.split(word)[0]) == 1:
                usable = [
                    pieces[other] for other in synonyms if other in pieces and not np.array_equal(pieces[other], word)
                ]
                if usable:
                    entries.setdefault(word.tobytes(), []).extend(usable)
    return entries


def _pieces(words: list[str], before: str, tokenizer: TextTokenizer) -> dict[str, npt.NDArray[np.int32]]:
    """The ids of each word that the vocabulary can spell."""
    ids, lengths = tokenizer.flat([before + word for word in words])
    ends = lengths.cumsum()
    lacking = (ids == tokenizer.tokenizer.unk_token_id).nonzero()[0]
    spelled = lengths > 0
    spelled[np.searchsorted(ends, lacking, side="right")] = False
    return {words[i]: ids[ends[i] - lengths[i] : ends[i]] for i in spelled.nonzero()[0].tolist()}
