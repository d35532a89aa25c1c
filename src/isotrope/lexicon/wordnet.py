"""The reader of WordNet's own files: senses, the relations between them, counts, irregular forms.

The format is WordNet's (``wndb(5WN)``): ``data.noun`` holds a sense a line and ``index.noun`` a word a line, the most
frequent sense first; ``noun.exc`` lists irregular forms, and ``cntlist.rev`` how often each sense was met in tagged
text. Debian's package ``wordnet-base`` brings exactly these files. Damaged files are refused with file and line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from isotrope.errors import InputError

WORDNET = Path("/usr/share/wordnet")
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
NOUN, VERB, ADJECTIVE, ADVERB = range(len(PARTS_OF_SPEECH))
PART_OF_LETTER = {"n": NOUN, "v": VERB, "a": ADJECTIVE, "s": ADJECTIVE, "r": ADVERB}  # s: a satellite adjective
PART_OF_DIGIT = {"1": NOUN, "2": VERB, "3": ADJECTIVE, "4": ADVERB, "5": ADJECTIVE}  # in the list of counts
EXAMPLE = re.compile(r'"([^"]+)"')
Fields = tuple[list[str], str]  # the fields of a line, and where it stands


@dataclass(frozen=True)
class Synset:
    """One sense: the words that share it, and where its relations lead."""

    words: tuple[str, ...]
    above: tuple[tuple[int, str], ...]  # hypernyms: (part, offset)
    opposites: tuple[tuple[str, int, str, int], ...]  # (word of this synset, part, offset, place of the word there)
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A word as one part of speech, with the senses that spell it so, the most frequent first."""

    part: int
    word: str
    senses: list[Synset]


class WordNet:
    """WordNet's files in one folder. Each file is read when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def synsets(self) -> list[dict[str, Synset]]:
        """For each part of speech the senses by their offset."""
        return [
            {fields[0]: _synset(fields, where) for fields, where in _lines(self.folder / f"data.{part}")}
            for part in PARTS_OF_SPEECH
        ]

    def entries(self, senses: int | None = None) -> Iterator[Entry]:
        """All words, each with its ``senses`` most frequent senses; None: with all.

        The index is in small letters. A sense that spells the word otherwise is left out: "an" is not "AN".
        """
        for part, name in enumerate(PARTS_OF_SPEECH):
            known = self.synsets[part]
            for fields, where in _lines(self.folder / f"index.{name}"):
                word = fields[0].replace("_", " ")
                own = [known[offset] for offset in _offsets(fields, where)[:senses] if offset in known]
                own = [synset for synset in own if word in synset.words]
                if own:
                    yield Entry(part, word, own)

    def find(self, part: int, offset: str) -> Synset | None:
        return self.synsets[part].get(offset)

    def counts(self) -> Counter[tuple[int, str]]:
        """How often each (part of speech, word) was met in the text that WordNet's makers tagged."""
        counts: Counter[tuple[int, str]] = Counter()
        for fields, where in _lines(self.folder / "cntlist.rev"):
            word, _, rest = fields[0].partition("%")
            try:
                counts[PART_OF_DIGIT[rest[:1]], word.replace("_", " ")] += int(fields[2])
            except (KeyError, IndexError, ValueError):
                raise _unreadable(where, "list of counts", "word%sense number count") from None
        return counts

    def exceptions(self, part: int) -> list[tuple[str, str]]:
        """(inflected form, base form) of the words that do not follow the rules."""
        return [
            (fields[0].replace("_", " "), base.replace("_", " "))
            for fields, _ in _lines(self.folder / f"{PARTS_OF_SPEECH[part]}.exc")
            for base in fields[1:]
        ]


def wordnet_folder() -> Path:
    """Where WordNet's files are: the variable ISOTROPE_WORDNET, or where its package puts them."""
    return Path(os.environ.get("ISOTROPE_WORDNET") or WORDNET)


def files_of(folder: Path) -> list[Path]:
    """All files that are read. Raises ``InputError`` where one is missing."""
    names = [f"{table}.{part}" for part in PARTS_OF_SPEECH for table in ("data", "index")]
    files = [folder / name for name in (*names, *(f"{part}.exc" for part in PARTS_OF_SPEECH), "cntlist.rev")]
    for file in files:
        _check_there(file)
    return files


def _check_there(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"{path} is missing: synonyms and antonyms come from WordNet; install the package wordnet-base "
            "(Debian, Ubuntu), or set ISOTROPE_WORDNET to the folder of its files."
        )


def _lines(path: Path) -> Iterator[Fields]:
    """The licence, whose lines begin with a blank, is passed over."""
    _check_there(path)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith(b" "):
                yield _decoded(line, f"{path}:{number}").split(), f"{path}:{number}"


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8; the file of WordNet is damaged, install it again.") from error


def _offsets(fields: list[str], where: str) -> list[str]:
    """The last fields of ``word type count … offset offset …``, as many as the count says."""
    try:
        return fields[-int(fields[2]) :]
    except (IndexError, ValueError):
        raise _unreadable(where, "index file", "word type count … offset") from None


def _synset(fields: list[str], where: str) -> Synset:
    """``offset file type count word id … count sign offset part places … | gloss``.

    The first count is hexadecimal, a blank in a word is written as _, and an adjective may carry a note on its place,
    such as (p).
    """
    try:
        words = tuple(word.split("(")[0].replace("_", " ") for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2])
    except (IndexError, ValueError):
        raise _unreadable(where, "data file", "offset file type count word …") from None
    place = 4 + 2 * len(words)
    above, opposites = [], []
    try:
        for start in range(place + 1, place + 1 + 4 * int(fields[place]), 4):
            sign, offset, letter, places = fields[start : start + 4]
            if sign in ("@", "@i"):
                above.append((PART_OF_LETTER[letter], offset))
            elif sign == "!":
                source, target = int(places[:2], 16) - 1, int(places[2:], 16) - 1
                opposites.append((words[source], PART_OF_LETTER[letter], offset, target))
    except (IndexError, KeyError, ValueError):
        raise _unreadable(where, "data file", "count sign offset part places …") from None
    gloss = " ".join(fields[fields.index("|") + 1 :]) if "|" in fields else ""
    return Synset(words, tuple(above), tuple(opposites), tuple(EXAMPLE.findall(gloss)))


def _unreadable(where: str, file: str, expected: str) -> InputError:
    return InputError(f"{where}: no line of a WordNet {file}; '{expected}' was expected.")
