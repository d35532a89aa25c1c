"""Ids of words that were met before, for tokenizers of BERT's kind: a text is cut and looked up, not tokenized again.

    bytes of many texts  →  words: runs of letters and digits, single punctuation marks  →  table: word → ids

Such a tokenizer changes and cuts letter by letter, so a word has the same ids in every text. Letters outside ASCII and
control characters have rules of their own: whatever stands between two blanks and holds one is looked up whole. The
tokenizer itself is asked for each word once. It takes some sixty microseconds for a sentence and hands its answer over
number by number; this takes a few, and no loop runs over tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

WORTH_IT = 256  # texts in a call; fewer are as quick as they are
BITS = 18  # of a slot's number
WIDEST = 15  # bytes of a word that has a slot; its key is these bytes and their number
LONGEST = 64  # bytes of a word that is kept at all
MOST = 400_000  # words that are kept
WIDEST_POOL = 1 << 22  # ids that are kept; words too long to be remembered leave theirs here too
ODDEST = 0.25  # share of odd bytes above which words are too long, as in Chinese
BORDER, JOINED = "|", 32  # between words of one text; words in it
BLANK, LETTER, MARK, ODD = range(4)
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int32]


def _kinds() -> Bytes:
    kinds = np.full(256, ODD, dtype=np.uint8)
    kinds[list(b" \t\n\r")] = BLANK
    kinds[33:127] = MARK
    kinds[[byte for byte in range(33, 127) if chr(byte).isalnum()]] = LETTER
    return kinds


KINDS = _kinds()
LOWER = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)
KEPT = np.array([(1 << 8 * size) - 1 for size in range(8)] + [(1 << 64) - 1], dtype=np.uint64)  # by bytes of a key
MIXED = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


@dataclass(frozen=True)
class Rules:
    """All that decides a word's ids; of the vocabulary its size. ``whole`` are special tokens."""

    lower: bool
    whole: tuple[str, ...]
    vocabulary: int
    normalizer: str
    model: tuple[str, str, int]


def rules_of(backend: Any) -> Rules | None:
    """None where the tokenizer is not of the kind."""
    model = backend.model
    if type(model).__name__ != "WordPiece" or backend.normalizer is None or backend.pre_tokenizer is None:
        return None
    states = [json.loads(part.__getstate__()) for part in (backend.normalizer, backend.pre_tokenizer)]
    if [state.get("type") for state in states] != ["BertNormalizer", "BertPreTokenizer"]:
        return None
    added = backend.get_added_tokens_decoder().values()
    if any(token.normalized for token in added):  # found in the changed text
        return None
    return Rules(
        bool(states[0]["lowercase"]),
        tuple(sorted(token.content for token in added)),
        backend.get_vocab_size(),
        str(states[0]),
        (model.unk_token, model.continuing_subword_prefix, model.max_input_chars_per_word),
    )


class KnownWords:
    """``ids`` asks the tokenizer. A text that holds a special token is tokenized as it is."""

    def __init__(self, ids: Callable[[list[str]], list[list[int]]], rules: Rules) -> None:
        self.ids, self.lower = ids, rules.lower
        self.whole = [token.encode() for token in rules.whole if token]
        self.lock = Lock()
        border = ids([BORDER])[0]
        unknown = ids(["\u2603"])[0] == border  # the vocabulary has no mark of this kind
        self.border = border[0] if len(border) == 1 and not unknown else None
        self._forget()

    def _forget(self) -> None:
        self.keys = np.zeros((2, 1 << BITS), dtype=np.uint64)  # no word has the key 0
        self.slots = np.zeros(1 << BITS, dtype=np.int64)  # the number of the word
        self.words: dict[bytes, int] = {}
        self.pool: Ids = np.empty(0, dtype=np.int32)  # the ids of all words
        self.places: Numbers = np.zeros(1, dtype=np.int64)  # where those of a word begin; the last is the end

    def flat(self, texts: list[str]) -> tuple[Ids, Numbers] | None:
        """All ids one after another and the length of each text; None where too little is plain ASCII."""
        try:
            encoded = [text.encode() for text in texts]
        except UnicodeEncodeError:  # half a character: the tokenizer refuses it in its own words
            return None
        blob = b"\n".join(encoded)
        sizes = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        begins = np.cumsum(sizes + 1) - sizes - 1
        raw = np.frombuffer(blob + bytes(16 + -len(blob) % 8), dtype=np.uint8)
        kinds = KINDS[raw]
        kinds[len(blob) :] = BLANK
        odd = np.flatnonzero(kinds == ODD)
        if len(odd) > ODDEST * len(blob):
            return None
        if len(odd):
            _widen(kinds, odd)
        asides = self._asides(blob, begins)
        for text in asides:
            kinds[begins[text] : begins[text] + sizes[text]] = LETTER
        starts, ends = _cut(kinds)
        firsts = np.searchsorted(starts, begins)  # the first word of each text
        letters = LOWER[raw] if self.lower else raw
        with self.lock:
            if len(self.words) > MOST or len(self.pool) > WIDEST_POOL:
                self._forget()
            words = self._found(letters, starts, ends, [(int(firsts[text]), texts[text]) for text in asides])
            places, pool = self.places, self.pool
        counts = places[words + 1] - places[words]
        until = np.concatenate([[0], np.cumsum(counts)])
        inside = np.arange(until[-1]) + np.repeat(places[words] - until[:-1], counts)
        return pool[inside], np.diff(until[np.append(firsts, len(words))])

    def _asides(self, blob: bytes, begins: Numbers) -> list[int]:
        """The texts that hold a special token."""
        found = set()
        for token in self.whole:
            place = blob.find(token)
            while place >= 0:
                found.add(int(np.searchsorted(begins, place, side="right")) - 1)
                place = blob.find(token, place + 1)
        return sorted(found)

    def _found(self, letters: Bytes, starts: Numbers, ends: Numbers, asides: list[tuple[int, str]]) -> Numbers:
        """The number of each word; those that nobody met are asked for."""
        own = dict(asides)
        alone = np.zeros(len(starts), dtype=np.bool_)
        alone[list(own)] = True
        keys, slots = _keys(letters, starts, ends - starts)
        fits = (ends - starts <= WIDEST) & ~alone

        def missed(rows: Any) -> Numbers:
            met = fits[rows] & (self.keys[:, slots[rows]] == keys[:, rows]).all(axis=0)
            return np.flatnonzero(~met)

        left = missed(slice(None))
        if not len(left):
            return self.slots[slots]
        content = letters.tobytes()

        def spelled(rows: Numbers) -> list[bytes]:
            return [content[a:b] for a, b in zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)]

        new = left[fits[left] & (self.keys[1][slots[left]] == 0)]
        new = new[np.unique(slots[new], return_index=True)[1]]  # of several that would have one slot the first
        self._learn(spelled(new))
        self.slots[slots[new]] = [self.words[word] for word in spelled(new)]
        self.keys[:, slots[new]] = keys[:, new]
        words, left = self.slots[slots], left[missed(left)]
        words[left[alone[left]]] = self._numbered([own[row] for row in left[alone[left]].tolist()])
        left = left[~alone[left]]
        others = spelled(left)  # long words, and those whose slot is another's
        passing = self._learn(others)
        words[left] = [self.words[word] if word in self.words else passing[word] for word in others]
        return words

    def _learn(self, words: list[bytes]) -> dict[bytes, int]:
        """The numbers of words that are new; those of a usual length are remembered."""
        new = [word for word in dict.fromkeys(words) if word not in self.words]
        numbers = dict(zip(new, self._asked([word.decode() for word in new]).tolist(), strict=True))
        self.words.update({word: number for word, number in numbers.items() if len(word) <= LONGEST})
        return numbers

    def _asked(self, words: list[str]) -> Numbers:
        """Many words in one text, a mark behind each: a text of its own for every word takes long."""
        apart = np.array([self.border is None or BORDER in word for word in words], dtype=np.bool_)
        numbers = np.empty(len(words), dtype=np.int64)
        for rows, ask in ((np.flatnonzero(~apart), self._joined), (np.flatnonzero(apart), self._numbered)):
            numbers[rows] = ask([words[row] for row in rows.tolist()])
        return numbers

    def _joined(self, words: list[str]) -> Numbers:
        spaced = [f" {BORDER} ".join([*words[i : i + JOINED], ""]) for i in range(0, len(words), JOINED)]
        rows = self.ids(spaced) if spaced else []
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=sum(map(len, rows)))
        ends = np.flatnonzero(ids == self.border)
        if len(ends) != len(words):  # a word has brought one more
            return self._numbered(words)
        return self._kept(ids[ids != self.border], np.diff(ends, prepend=-1) - 1)

    def _numbered(self, texts: list[str]) -> Numbers:
        found = self.ids(texts) if texts else []
        sizes = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        return self._kept(np.fromiter(chain.from_iterable(found), dtype=np.int32, count=int(sizes.sum())), sizes)

    def _kept(self, ids: Ids, sizes: Numbers) -> Numbers:
        """The numbers of words whose ids stand one behind another."""
        first = len(self.places) - 1
        self.pool = np.concatenate([self.pool, ids])
        self.places = np.concatenate([self.places, self.places[-1] + np.cumsum(sizes)])
        return np.arange(first, first + len(sizes))


def _widen(kinds: Bytes, odd: Numbers) -> None:
    """Between two blanks with an odd byte, all are letters of one word."""
    blanks = np.concatenate([[-1], np.flatnonzero(kinds == BLANK)])
    behind = np.unique(np.searchsorted(blanks, odd))
    begins, sizes = blanks[behind - 1] + 1, blanks[behind] - blanks[behind - 1] - 1
    kinds[np.arange(int(sizes.sum())) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)] = LETTER


def _cut(kinds: Bytes) -> tuple[Numbers, Numbers]:
    """Where words begin, and where they end."""
    letter, mark = kinds == LETTER, kinds == MARK
    begins, ends = letter.copy(), letter.copy()
    begins[1:] &= ~letter[:-1]
    ends[:-1] &= ~letter[1:]
    return np.flatnonzero(begins | mark), np.flatnonzero(ends | mark) + 1


def _keys(letters: Bytes, starts: Numbers, sizes: Numbers) -> tuple[Keys, Numbers]:
    """Of each word its first fifteen bytes and their number, and the slot where it would be."""
    eights, shift = letters.view("<u8"), (starts % 8 * 8).astype(np.uint64)
    place = starts // 8
    low, middle, high = eights[place], eights[place + 1], eights[np.minimum(place + 2, len(eights) - 1)]
    back = np.uint64(63) - shift
    keys = np.empty((2, len(starts)), dtype=np.uint64)
    keys[0] = ((low >> shift) | ((middle << np.uint64(1)) << back)) & KEPT[np.minimum(sizes, 8)]
    keys[1] = ((middle >> shift) | ((high << np.uint64(1)) << back)) & KEPT[np.clip(sizes - 8, 0, 7)]
    keys[1] |= np.minimum(sizes, WIDEST).astype(np.uint64) << np.uint64(56)
    mixed = keys[0] * MIXED[0] + keys[1] * MIXED[1]
    mixed ^= mixed >> np.uint64(29)
    mixed *= MIXED[1]
    return keys, (mixed >> np.uint64(64 - BITS)).astype(np.int64)
