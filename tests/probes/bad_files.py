"""Files that no reader should take for what they are not, and a few odd ones that every reader must take.

Of each: its name, its content, whether it must be refused, and what must be said.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SCENES = ("the chef bakes bread", "the sailor steers", "the pilot lands", "the farmer waters", "the chord rings", "")
LINES = "".join(f"{scene} on day {day}\n" if scene else "\n" for day in range(4) for scene in SCENES).encode()
HUGE = b"x" * 30_000_000
ROWS = b"".join(b'{"text": "the boat number %d"}\n' % row for row in range(20))


@dataclass(frozen=True)
class BadFile:
    """A file to be made in the folder of a probe; ``content`` may be a function that makes it."""

    label: str
    name: str
    content: bytes | Callable[[Path], None]
    expects: str = "refused"
    says: str = ""

    def make(self, folder: Path) -> None:
        if callable(self.content):
            self.content(folder / self.name)
        else:
            (folder / self.name).write_bytes(self.content)


def _circle(path: Path) -> None:
    path.symlink_to(path)


def _nothing(path: Path) -> None:
    """The file is missing."""


TEXTS = [
    BadFile("missing", "a.txt", _nothing, says="no such file"),
    BadFile("a folder", "a.txt", lambda path: path.mkdir(), says="this is a folder"),
    BadFile("a pipe", "a.txt", lambda path: os.mkfifo(path), says="a pipe or a device"),
    BadFile("a device", "a.txt", lambda path: path.symlink_to("/dev/zero"), says="a pipe or a device"),
    BadFile("a link in a circle", "a.txt", _circle, says="circle"),
    BadFile("empty", "a.txt", b"", says="empty"),
    BadFile("blank lines", "a.txt", b"\n \n\t\n\n"),
    BadFile("only zeros", "a.txt", bytes(1000), says="NUL byte"),
    BadFile("no suffix", "a", LINES, says="unknown file type"),
    BadFile("another suffix", "a.pdf", LINES, says="unknown file type"),
    BadFile("latin1", "a.txt", LINES + b"caf\xe9\n", says="0xe9 is not UTF-8"),
    BadFile("UTF-16", "a.txt", LINES.decode().encode("utf-16"), says="UTF-16"),
    BadFile("UTF-16 without mark", "a.txt", LINES.decode().encode("utf-16-le"), says="UTF-16"),
    BadFile("UTF-32", "a.txt", LINES.decode().encode("utf-32"), says="UTF-32"),
    BadFile("a NUL byte", "a.txt", LINES + b"one\0two\n", says=":25: a NUL byte"),
    BadFile("CR-only lines", "a.txt", LINES.replace(b"\n", b"\r"), says="carriage return"),
    BadFile("one long line", "a.txt", LINES + HUGE, says=":25: the line is longer"),
    BadFile("one long line, packed", "a.txt.gz", gzip.compress(LINES + HUGE, 1), says="longer"),
    BadFile("gzip under a plain name", "a.txt", gzip.compress(LINES), says="a gzip file"),
    BadFile("xz under a plain name", "a.txt", lzma.compress(LINES), says="an xz file"),
    BadFile("bzip2 under a plain name", "a.txt", bz2.compress(LINES), says="a bzip2 file"),
    BadFile("not gzip", "a.txt.gz", LINES, says="damaged"),
    BadFile("not xz", "a.txt.xz", LINES, says="damaged"),
    BadFile("gzip cut short", "a.txt.gz", gzip.compress(LINES * 50)[:-9], says="damaged"),
    BadFile("xz cut short", "a.txt.xz", lzma.compress(LINES * 50)[:-9], says="damaged"),
    BadFile("garbage behind gzip", "a.txt.gz", gzip.compress(LINES) + b"garbage", says="damaged"),
    BadFile("garbage behind xz", "a.txt.xz", lzma.compress(LINES) + b"garbage", says="damaged"),
    BadFile("empty gzip", "a.txt.gz", gzip.compress(b"")),
    BadFile("json: not JSON", "a.jsonl", ROWS + b'{"text": \n', says=":21: not JSON"),
    BadFile("json: a number", "a.jsonl", ROWS + b"5\n", says=":21: an object"),
    BadFile("json: deep", "a.jsonl", ROWS + b"[" * 100_000 + b"\n", says="nested too deeply"),
    BadFile("json: 5,000 digits", "a.jsonl", ROWS + b'{"text": ' + b"9" * 5000 + b"}\n", says="too many digits"),
    BadFile("json: a key twice", "a.jsonl", ROWS + b'{"text": "a", "text": "b"}\n', says="stands twice"),
    BadFile("json: NaN", "a.jsonl", ROWS + b'{"text": NaN}\n', says="NaN is not JSON"),
    BadFile("json: an object as text", "a.jsonl", ROWS + b'{"text": {"a": 1}}\n', says=":21: a text was expected"),
    BadFile("json: half a character", "a.jsonl", ROWS + b'{"text": "\\ud83d"}\n', says="half a character"),
    BadFile("json: other columns", "a.jsonl", b'{"left": 1, "right": 2}\n', says="column"),
    BadFile("csv: a column twice", "a.csv", b"text,text\na,b\nc,d\n", says="stands twice"),
    BadFile("csv: semicolons, then commas", "a.csv", b"text;score\na,1\nb,2\n", says=":2: 1 fields"),
    BadFile("csv: tabs, then commas", "a.csv", b"text\tscore\na,1\nb,2\n", says=":2: 1 fields"),
    BadFile("csv: an open quote", "a.csv", b'text\n"never closed\nb\nc\n', says="never closed"),
    BadFile("csv: too many fields", "a.csv", b"text,score\na,1\nb,2,3\n", says=":3: 3 fields"),
    BadFile("csv: only a header", "a.csv", b"text\n"),
    BadFile("tsv: commas", "a.tsv", b"text,score\na,1\n", says="commas"),
    BadFile("tsv: too few fields", "a.tsv", b"text\tscore\na\n", says=":2: 1 fields"),
    BadFile("parquet: no parquet", "a.parquet", LINES, says="not a parquet file"),
    BadFile("parquet: cut short", "a.parquet", b"PAR1" + bytes(100), says="not a parquet file"),
    BadFile("Windows lines, mark", "a.txt", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"), expects="answered"),
    BadFile("markup in texts", "a.txt", LINES + b"[/b] list[int] :smile: [bold]\n" * 2, expects="answered"),
    BadFile("escape codes in texts", "a.txt", LINES + b"\x1b[31mred\x1b]0;title\x07\n" * 2, expects="answered"),
    BadFile(
        "emoji and Arabic", "a.txt", LINES + "👩‍👩‍👧 مرحبا بالعالم e\u0301\u200b\n".encode() * 2, expects="answered"
    ),
    BadFile("no line end", "a.txt", LINES.rstrip(), expects="answered"),
    BadFile("packed in streams", "a.txt.xz", lzma.compress(LINES) + lzma.compress(LINES), expects="answered"),
]
PAIR = b"the chef bakes %d\tthe cook makes bread %d\t%d\n"
PAIRS = b"sentence1\tsentence2\tscore\n" + b"".join(PAIR % (row, row, row % 6) for row in range(30))


def _scored(*scores: str) -> bytes:
    return PAIRS + b"".join(f"a {row}\tb {row}\t{score}\n".encode() for row, score in enumerate(scores))


SCORED = [
    BadFile("a score that is no number", "p.tsv", _scored("high"), says="score"),
    BadFile("a NaN score", "p.tsv", _scored("nan"), says="score"),
    BadFile("an infinite score", "p.tsv", _scored("inf"), says="score"),
    BadFile("an empty score", "p.tsv", _scored(""), says="score"),
    BadFile("a column missing", "p.tsv", b"sentence1\tsentence2\na\tb\n", says="column"),
    BadFile("a row cut short", "p.tsv", PAIRS + b"one\ttwo\n", says=":32: 2 fields"),
    BadFile("a header alone", "p.tsv", b"sentence1\tsentence2\tscore\n"),
    BadFile("NaN in JSON", "p.jsonl", b'{"sentence1": "a", "sentence2": "b", "score": NaN}\n', says="NaN"),
    BadFile("a list as score", "p.jsonl", b'{"sentence1": "a", "sentence2": "b", "score": [1]}\n', says="a list found"),
    BadFile("a deep row", "p.jsonl", b'{"sentence1": ' + b"[" * 100_000, says="deeply"),
    BadFile("semicolons, then commas", "p.csv", b"sentence1;sentence2;score\na,b,1\n", says=":2: 1 fields"),
    BadFile("a column twice", "p.csv", b"sentence1,sentence1,score\na,b,1\n", says="stands twice"),
    BadFile("plain text", "p.txt", LINES),
]

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))
RECIPES = {
    "aliases that unfold": LAUGHS,
    "an alias of itself": "settings: &a\n  seed: *a\n",
    "deep lists": "settings: " + "[" * 5000,
    "deep mappings": "settings: " + "{a: " * 5000,
    "a megabyte": "about: '" + "x" * 1_100_000 + "'",
    "a key twice": "method: simcse\nmethod: mlm\n",
    "a setting twice": "settings:\n  seed: 1\n  seed: 2\n",
    "a number as key": "1: simcse\n",
    "a date as key": "settings:\n  2020-01-01: 3\n",
    "a list as key": "settings: {[1, 2]: 3}\n",
    "nothing as key": "settings: {~: 3}\n",
    "a list as value": "settings:\n  seed: [1]\n",
    "a mapping as value": "settings:\n  seed: {a: 1}\n",
    "a date as value": "settings:\n  seed: 2020-01-01\n",
    "no date as value": "settings:\n  seed: 2020-13-45\n",
    "yes as a number": "settings:\n  weight_decay: yes\n",
    "NaN": "settings:\n  temperature: .nan\n",
    "infinity": "settings:\n  epochs: .inf\n",
    "a negative seed": "settings:\n  seed: -1\n",
    "a number as model": "model: 5\n",
    "a list as model": "model: [a]\n",
    "yes as pooling": "pooling: true\n",
    "a list as method": "method: [simcse]\n",
    "code": "settings:\n  seed: !!python/object/apply:os.getcwd []\n",
    "no number": "settings:\n  seed: !!int x\n",
    "a NUL": "model: a\0b\n",
    "two documents": "method: simcse\n---\nmethod: simcse\n",
    "nothing": "",
    "a tab": "settings:\n\tseed: 1\n",
    "a list": "- 1\n",
    "an unknown key": "sttings:\n  seed: 1\n",
    "an unknown setting": "settings:\n  sead: 1\n",
    "another method": "method: mlm\n",
    "an open bracket": "settings: [1\n",
}

WIKI = [
    BadFile("prose", "w.xml", LINES, says="neither XML nor JSON"),
    BadFile("other XML", "w.xml", b"<html><body/></html>", says="not a MediaWiki dump"),
    BadFile("XML cut short", "w.xml", b"<mediawiki><page><title>A</title>", says="breaks off"),
    BadFile(
        "XML that unfolds",
        "w.xml",
        b'<!DOCTYPE m [<!ENTITY a "' + b"x" * 10_000 + b'"><!ENTITY b "' + b"&a;" * 5000 + b'">]>'
        b"<mediawiki><page><title>&b;</title></page></mediawiki>",
    ),
    BadFile("JSON that is none", "w.jsonl", b'{"title": \n', says="not JSON"),
    BadFile("JSON without title", "w.jsonl", b'{"text": "a"}\n', says="title"),
    BadFile("deep JSON", "w.jsonl", b'{"title": ' + b"[" * 100_000, says="deeply"),
    BadFile("bzip2 cut short", "w.xml.bz2", bz2.compress(b"<mediawiki/>" * 1000)[:-9], says="damaged"),
    BadFile("garbage behind bzip2", "w.xml.bz2", bz2.compress(b"<mediawiki></mediawiki>") + b"garbage"),
    BadFile("empty", "w.xml", b"", says="empty"),
    BadFile("no links", "w.jsonl", json.dumps({"title": "A", "text": "no links"}).encode()),
]

VECTORS = [
    BadFile("prose", "v.txt", LINES, says="no word with its numbers"),
    BadFile("empty", "v.txt", b"", says="empty"),
    BadFile("NaN", "v.txt", b"the 1 2\nchef nan 3\n", says="not finite"),
    BadFile("infinity", "v.txt", b"the 1 2\nchef inf 3\n", says="not finite"),
    BadFile("ragged", "v.txt", b"the 1 2\nchef 1 2 3\n", says="numbers, 2 expected"),
    BadFile("cut short", "v.txt", b"3 2\nthe 1 2\nchef 3 4\n", says="cut short"),
    BadFile("binary", "v.txt", b"2 2\nthe " + bytes(range(256)), says="binary"),
    BadFile("latin1", "v.txt", b"the 1 2\ncaf\xe9 3 4\n", says="UTF-8"),
    BadFile("long line", "v.txt", b"the 1 2\nchef " + b"1 " * 3_000_000, says="longer"),
    BadFile("gzip cut short", "v.txt.gz", gzip.compress(b"the 1 2\n" * 999)[:-9], says="damaged"),
]
