"""WordNet's own files:

which words share a sense, which sense stands above another, which words are opposites, how words are inflected.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isotrope.errors import InputError

WORDNET = Path("/usr/share/wordnet")
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
PART_OF_LETTER = {"n": 0, "v": 1, "a": 2, "s": 2, "r": 3}  # of a synset; s is an adjective that leans on another
PART_OF_DIGIT = {"1": 0, "2": 1, "3": 2, "4": 3, "5": 2}  # of a sense in the list of counts
PLAIN = re.compile(r"[a-z]+(?:[ '-][a-z]+)*")  # names, figures and signs are no everyday words
EXAMPLE = re.compile(r'"([^"]+)"')


@dataclass(frozen=True)
class Related:
    """What may stand for a word of one part of speech, and what says the contrary; base forms, sorted."""

    synonyms: tuple[str, ...]
    hypernyms: tuple[str, ...]
    antonyms: tuple[str, ...]


@dataclass(frozen=True)
class Synset:
    words: tuple[str, ...]
    above: tuple[tuple[int, str], ...]  # (part, offset)
    opposites: tuple[
        tuple[str, int, str, int], ...
    ]  # (word of this synset, part, offset, place of the other word there)
    examples: tuple[str, ...]


def wordnet_folder() -> Path:
    """Where WordNet's files are: the variable ISOTROPE_WORDNET, or where its package puts them."""
    return Path(os.environ.get("ISOTROPE_WORDNET") or WORDNET)


def files_of(folder: Path) -> list[Path]:
    """All files that are read, each of which must be there."""
    names = [f"{kind}.{part}" for part in PARTS_OF_SPEECH for kind in ("data", "index")]
    files = [folder / name for name in (*names, *(f"{part}.exc" for part in PARTS_OF_SPEECH), "cntlist.rev")]
    for file in files:
        check_there(file)
    return files


def check_there(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"{path} is missing: synonyms and antonyms come from WordNet; install the package wordnet-base (Debian, Ubuntu), or set "
            "ISOTROPE_WORDNET to the folder of its files."
        )


def related_words(
    folder: Path, synsets: list[dict[str, Synset]], senses: int | None = None
) -> dict[tuple[int, str], Related]:
    """By (part of speech, base form). Of each word the ``senses`` most frequent senses count; None: all.

    Opposites are those of the word itself, not of its synonyms: "large" is opposed to "small", "big" to "little".
    """
    found = {}
    for part, name in enumerate(PARTS_OF_SPEECH):
        for fields, where in lines_of(folder / f"index.{name}"):
            word = fields[0].replace("_", " ")
            own = [synsets[part][offset] for offset in offsets_in(fields, where)[:senses] if offset in synsets[part]]
            own = [synset for synset in own if word in synset.words]
            if not own or not PLAIN.fullmatch(word):
                continue
            above = [synsets[p][o] for synset in own for p, o in synset.above if o in synsets[p]]
            opposite = [
                synsets[p][o].words[place]
                for synset in own
                for source, p, o, place in synset.opposites
                if source == word and o in synsets[p] and place < len(synsets[p][o].words)
            ]
            synonyms = {other for synset in own for other in synset.words}
            groups = (
                synonyms,
                {other for synset in above for other in synset.words} - synonyms,
                set(opposite) - synonyms,
            )
            found[part, word] = Related(
                *(tuple(sorted(w for w in group - {word} if PLAIN.fullmatch(w))) for group in groups)
            )
    return found


def read_synsets(folder: Path) -> list[dict[str, Synset]]:
    """Of each part of speech, by offset."""
    return [
        {fields[0]: _synset(fields, where) for fields, where in lines_of(folder / f"data.{part}")}
        for part in PARTS_OF_SPEECH
    ]


def read_counts(folder: Path) -> Counter[tuple[int, str]]:
    """How often a word was met as a part of speech, in the text that WordNet's makers tagged."""
    counts: Counter[tuple[int, str]] = Counter()
    for fields, where in lines_of(folder / "cntlist.rev"):
        word, _, rest = fields[0].partition("%")
        try:
            counts[PART_OF_DIGIT[rest[:1]], word.replace("_", " ")] += int(fields[2])
        except (KeyError, IndexError, ValueError):
            raise InputError(f"{where}: no line of WordNet's counts; 'word%sense number count' was expected.") from None
    return counts


def read_exceptions(folder: Path, part: int) -> list[tuple[str, str]]:
    """(inflected form, base form) of the words that do not follow the rules."""
    pairs = []
    for fields, _ in lines_of(folder / f"{PARTS_OF_SPEECH[part]}.exc"):
        pairs += [(fields[0].replace("_", " "), base.replace("_", " ")) for base in fields[1:]]
    return pairs


def lines_of(path: Path) -> Iterator[tuple[list[str], str]]:
    """The fields of each line and where it stands; the licence, whose lines begin with a blank, is passed over."""
    check_there(path)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.startswith(" "):
                yield line.split(), f"{path}:{number}"


def words_in(fields: list[str], where: str) -> tuple[str, ...]:
    """Of ``offset file type count word id word id …``: the count is hexadecimal, a blank in a word is written as _, and
    an adjective may carry a note on its place, such as (p)."""
    try:
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
    except (IndexError, ValueError):
        raise InputError(
            f"{where}: no line of a WordNet data file; 'offset file type count word …' was expected."
        ) from None
    return tuple(word.split("(")[0].replace("_", " ") for word in words)


def offsets_in(fields: list[str], where: str) -> list[str]:
    """Of ``word type count … offset offset …``: as many offsets as the count says, the most frequent sense first."""
    try:
        return fields[-int(fields[2]) :]
    except (IndexError, ValueError):
        raise InputError(
            f"{where}: no line of a WordNet index file; 'word type count … offset' was expected."
        ) from None


def _synset(fields: list[str], where: str) -> Synset:
    """Behind the words: ``count sign offset part places …``, then the gloss after a bar."""
    words = words_in(fields, where)
    place = 4 + 2 * len(words)
    above, opposites = [], []
    try:
        for start in range(place + 1, place + 1 + 4 * int(fields[place]), 4):
            sign, offset, letter, places = fields[start : start + 4]
            if sign in ("@", "@i"):
                above.append((PART_OF_LETTER[letter], offset))
            elif sign == "!":
                opposites.append(
                    (words[int(places[:2], 16) - 1], PART_OF_LETTER[letter], offset, int(places[2:], 16) - 1)
                )
    except (IndexError, KeyError, ValueError):
        raise InputError(
            f"{where}: no line of a WordNet data file; 'count sign offset part places …' was expected."
        ) from None
    gloss = " ".join(fields[fields.index("|") + 1 :]) if "|" in fields else ""
    return Synset(words, tuple(above), tuple(opposites), tuple(EXAMPLE.findall(gloss)))
