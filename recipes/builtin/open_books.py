"""Two books in the public domain that Debian packages hold, as pairs and as running text.

    open_books.py dictionary GCIDE.dict.dz WORK     → WORK/given/dictionary.tsv.xz (definition, word), dictionary_docs.txt.xz
    open_books.py verses KJV WEB WORK               → WORK/given/verses.tsv.xz (one verse in two translations)

``dict-gcide`` holds Webster's dictionary of 1913 with later additions; only what it marks as of 1913 (or its supplement)
is read, nothing of WordNet and of the editors. ``sword-text-kjv`` and ``sword-text-web`` hold the King James Version and
the World English Bible; KJV and WEB are their module folders (…/ztext/NAME).
"""

from __future__ import annotations

import gzip
import lzma
import re
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isotrope.files import written_file

OLD = ("[1913 Webster]", "[Webster 1913 Suppl.]")
BRACKETS = re.compile(r"\[[^][]*\]")
AUTHOR = re.compile(r"\s*--\s?(\([^)]*\)|[A-Z][\w.&' ]*(\([^)]*\))?)\.?\s*$")
GRAMMAR = re.compile(
    r"^[\s,;&.]*((n|a|v|adv|prep|conj|interj|p|pl|imp|vb|t|i|pr|sing|superl|compar|pron|pref|obs|r)\b\.?[\s,;&]*|\{[^}]*\}[\s,;.]*|or\s+)*"
)
NUMBER = re.compile(r"^\(?(\d+|[a-z])[.)]\s+")
SUBJECT = re.compile(r"^\([A-Z][^)]*\)\s*")
MARKUP = re.compile(r"<note.*?</note>|<title.*?</title>|<[^>]*>", re.DOTALL)
Entry = tuple[str, list[str], list[str]]  # the word, its definitions, its synonyms


def dictionary(source: Path, work: Path) -> None:
    pairs, documents = [], []
    for word, definitions, synonyms in entries(gzip.decompress(source.read_bytes()).decode("utf-8", "replace")):
        pairs += [(definition, word) for definition in definitions if len(definition.split()) > 2]
        if len(synonyms) > 1:
            pairs.append((", ".join(synonyms), word))
        documents.append([f"{word}: {definition}" for definition in definitions])
    write_pairs(work / "given" / "dictionary.tsv.xz", pairs)
    with written_file(work / "given" / "dictionary_docs.txt.xz") as temporary:
        text = "\n".join("".join(f"{line}\n" for line in lines) for lines in documents if lines)
        temporary.write_bytes(lzma.compress(text.encode()))


def entries(text: str) -> Iterator[Entry]:
    """An entry begins at the edge, with a word and its pronunciation; a paragraph ends with a blank line."""
    for block in re.split(r"\n(?=\S[^\n]*\\)", text):
        head = re.match(r"([^\\\n]+?) \\", block)
        if head is None:
            continue
        word, definitions, synonyms = head[1].strip(), [], []
        for number, paragraph in enumerate(tagged(block)):
            if number == 0:
                paragraph = re.sub(r"^[^\\]*\\.*?\\", "", paragraph, count=1)
                paragraph = GRAMMAR.sub("", BRACKETS.sub("", BRACKETS.sub("", re.sub(r"\(-?[^)]*[`'\"*][^)]*\)", "", paragraph))))
            if paragraph.startswith("Syn:"):
                synonyms += [one.strip() for one in re.split(r"[;,.]", plain(paragraph[4:])) if 0 < len(one.split()) < 4]
            elif not paragraph.startswith("Note:") and (found := plain(paragraph)):
                definitions.append(found)
        yield word, definitions, synonyms


def tagged(block: str) -> Iterator[str]:
    """The paragraphs of 1913 that are no quotations: those stand four columns and more behind what they illustrate."""
    first = True
    for paragraph in re.split(r"\n\s*\n", block):
        lines = paragraph.rstrip().split("\n")
        marked, joined = lines[-1].strip(), " ".join(line.strip() for line in lines)
        if not first and not re.match(r"\s*(\(?(\d+|[a-z])[.)] |\{|Syn:)", paragraph):
            continue
        first = False
        if marked in OLD:
            yield joined.removesuffix(marked)


def plain(paragraph: str) -> str:
    """The definition alone: no number, subject, citation, reference or example."""
    text = BRACKETS.sub("", BRACKETS.sub("", paragraph)).strip()
    for mark in (NUMBER, SUBJECT, NUMBER, SUBJECT):
        text = mark.sub("", text)
    text = re.split(r"[;,:] as(, |; |: )|\s--\s?[A-Z]|\bSee \{|; -- (opposed|said|called|used|distinguished)", text)[0]
    text = re.sub(r"\{([^}]*)\}", r"\1", AUTHOR.sub("", text))
    return re.sub(r"\s+", " ", text).strip(" ,;:-").replace("\t", " ")


def verses(first: Path, second: Path, work: Path) -> None:
    both = [dict(zip_text(folder)) for folder in (first, second)]
    rows = [(both[0][place], both[1][place]) for place in both[0] if place in both[1]]
    write_pairs(work / "given" / "verses.tsv.xz", [row for row in rows if min(len(text.split()) for text in row) > 3])


def zip_text(module: Path) -> Iterator[tuple[tuple[str, int], str]]:
    """A zText module: blocks of verses, each verse by block, offset and length (www.crosswire.org, SWORD)."""
    for part in ("ot", "nt"):
        blocks = list(struct.iter_unpack("<III", (module / f"{part}.bzs").read_bytes()))
        data, known = (module / f"{part}.bzz").read_bytes(), {}
        for place, (block, start, size) in enumerate(struct.iter_unpack("<IIH", (module / f"{part}.bzv").read_bytes())):
            if size == 0:
                continue
            if block not in known:
                offset, packed, _ = blocks[block]
                known = {block: zlib.decompress(data[offset : offset + packed])}
            text = MARKUP.sub(" ", known[block][start : start + size].decode("utf-8", "replace"))
            yield (part, place), re.sub(r"\s+([,.;:?!])", r"\1", re.sub(r"\s+", " ", text)).strip(" ¶")


def write_pairs(path: Path, rows: Iterable[Sequence[str]]) -> None:
    kept = list(dict.fromkeys(tuple(row) for row in rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_file(path) as temporary:
        lines = ["anchor\tpositive", *("\t".join(row) for row in kept)]
        temporary.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))
    print(f"{path}: {len(kept):,} pairs, {path.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    verb, *places = sys.argv[1:]
    {"dictionary": dictionary, "verses": verses}[verb](*map(Path, places))
