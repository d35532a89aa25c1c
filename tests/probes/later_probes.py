"""Probes of the commands that use a model: index, search PLACE, serve, predict, head, export, push, shards, images."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bad_files import LINES, TEXTS, BadFile
from later_world import copied, part
from probe_runner import Probe

Change = Callable[[Path], Any]
INDEX = ("index", "{world}/tiny", "{file}", "--output", "place")
SHARDS = ("encode", "{world}/tiny", "{file}", "--shards", "s", "--shard-size", "5", "--output", "v.npy")
HEAD = ("train", "head", "{file}", "--model", "{world}/tiny", "--output", "run")
IMAGES = ("--model", "conv:4@16", "--max-steps", "1", "--batch-size", "4", "--held-out", "4", "--output", "run")
# By command, its words with {file} for the file of sentences, and the parts of the world that it needs.
READERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "index": (INDEX, ()),
    "index --update": (("index", "{world}/tiny", "{file}", "--output", "index", "--precision", "int8", "--update"), ()),
    "encode --shards": (SHARDS, ()),
    "predict": (("predict", "{world}/head", "{file}", "--output", "p.tsv"), ("head",)),
    "distil": (("distil", "{world}/tiny", "{file}", "--to", "static", "--output", "m", "--epochs", "1"), ()),
}
NUMBERS = ("nan", "inf", "-inf", "1e30", "-1", "x", "")
SERVE = ("serve", "{world}/tiny", "--port", "0")
OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str | None]] = {
    "index": (("index", "{world}/tiny", "{world}/copy.txt", "--output", "place"), ("--dimensions",), None),
    "search PLACE": (("search", "{world}/index", "boat"), ("--top",), "index"),
    "predict": (("predict", "{world}/head", "{world}/copy.txt"), ("--top",), "head"),
    "serve": (SERVE, ("--port", "--batch-tokens", "--max-inputs", "--max-body", "--max-waiting"), None),
    "encode": (
        ("encode", "{world}/tiny", "{world}/copy.txt", "--output", "v.npy", "--shards", "s"),
        ("--shard-size", "--truncate-dim"),
        None,
    ),
    "train head": (
        ("train", "head", "{world}/labelled.tsv", "--output", "run"),
        ("--strength", "--seed"),
        "labelled.tsv",
    ),
    "train simclr": (
        ("train", "simclr", "{world}/images", *IMAGES),
        ("--temperature", "--learning-rate", "--epochs"),
        "images",
    ),
    "distil": (("distil", "{world}/tiny", "{world}/copy.txt", "--output", "m"), ("--epochs", "--learning-rate"), None),
}


def later_probes() -> list[Probe]:
    groups = (_texts, _options, _outputs, _names, _labelled, _filters, _indexes, _serving, _heads, _exports, _shards)
    return [probe for group in (*groups, _images, _image_models, _nan_models, _pushes, _checks) for probe in group()]


def _needing(*names: str, make: Callable[[Path], Any] | None = None) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        for name in names:
            part(name)
        if make is not None:
            make(folder)

    return made


def _texts() -> Iterator[Probe]:
    for command, (words, names) in READERS.items():
        for file in TEXTS:
            named = tuple(word.replace("{file}", file.name) for word in words)
            make = _needing(*names, make=file.make)
            if command == "index --update":
                make = _needing(make=partial(_next_to_index, file=file))
            yield Probe(command, file.label, named, make, file.expects, file.says)


def _next_to_index(folder: Path, file: BadFile) -> None:
    copied(folder, "index", lambda place: None)
    file.make(folder)


def _options() -> Iterator[Probe]:
    for command, (words, flags, name) in OPTIONS.items():
        for flag in flags:
            for value in NUMBERS:
                make = None if name is None else _needing(name)
                yield Probe(f"options of {command}", f"{flag} {value or 'empty'}", (*words, f"{flag}={value}"), make)


FILES_IN_THE_WAY: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "a folder of something else": ("taken", lambda folder: _taken(folder)),
    "a file in the way": ("taken", lambda folder: (folder / "taken").write_text("mine")),
    "below a file": ("taken/a", lambda folder: (folder / "taken").write_text("mine")),
    "a name too long": ("x" * 300, lambda folder: None),
    "in a folder of the system": ("/proc/a", lambda folder: None),
    "an empty name": ("", lambda folder: None),
    "over the text": ("{world}/copy.txt", lambda folder: None),
    "over the model": ("{world}/tiny", lambda folder: None),
}
FOLDER_WRITERS: dict[str, tuple[str, ...]] = {
    "index": ("index", "{world}/tiny", "{world}/copy.txt", "--output", "{out}"),
    "encode --shards": ("encode", "{world}/tiny", "{world}/copy.txt", "--shards", "{out}"),
    "export": ("export", "{world}/tiny", "{out}"),
    "export --int8": ("export", "{world}/tiny", "{out}", "--int8"),
    "train head": ("train", "head", "{world}/labelled.tsv", "--model", "{world}/tiny", "--output", "{out}"),
    "train simclr": ("train", "simclr", "{world}/images", *IMAGES[:-1], "{out}"),
    "distil": ("distil", "{world}/tiny", "{world}/copy.txt", "--output", "{out}", "--epochs", "1"),
}
PREDICTED = {
    "a folder in the way": "taken.tsv",
    "another suffix": "a.doc",
    "an empty name": "",
    "no folder": "no/a.tsv",
}


def _taken(folder: Path) -> None:
    (folder / "taken").mkdir()
    (folder / "taken" / "mine.txt").write_text("mine", encoding="utf-8")


def _outputs() -> Iterator[Probe]:
    for command, words in FOLDER_WRITERS.items():
        names = [name for name in ("labelled.tsv", "images") if any(name in word for word in words)]
        for label, (output, make) in FILES_IN_THE_WAY.items():
            named = tuple(word.replace("{out}", output) for word in words)
            yield Probe("outputs of folders", f"{command}: {label}", named, _needing(*names, make=make))
    for label, output in PREDICTED.items():
        words = ("predict", "{world}/head", "{world}/copy.txt", "--output", output)
        expects = "answered" if label == "no folder" else "refused"
        make = _needing("head", make=lambda folder: (folder / "taken.tsv").mkdir())
        yield Probe("outputs of folders", f"predict: {label}", words, make, expects)
    same = ("predict", "{world}/head", "p.tsv", "--columns", "text", "--output", "p.tsv")
    make = _needing("head", make=lambda folder: shutil.copy(part("labelled.tsv"), folder / "p.tsv"))
    yield Probe("outputs of folders", "predict: over its own text", same, make)
    words = ("predict", "{world}/head", "{world}/copy.txt", "--json", "taken.json")
    make = _needing("head", make=lambda folder: (folder / "taken.json").mkdir())
    yield Probe("outputs of folders", "predict: --json onto a folder", words, make)


def _names() -> Iterator[Probe]:
    odd = ("[/b].txt", "a\nb.txt", ":smile:.txt", "-a.txt", "\x1b[31m.txt", "a\udcff.txt", "ü€.txt")
    for name in odd:
        for command in ("index", "encode --shards", "predict"):
            words, names = READERS[command]
            named = tuple(word.replace("{file}", f"./{name}") for word in words)
            expects = "refused" if "\udcff" in name else "answered"
            copy = partial(_copy_text, name=name)
            yield Probe("names", f"{command} {name!r}", named, _needing(*names, make=copy), expects)
            yield Probe("names", f"{command} missing {name!r}", named, _needing(*names))


def _copy_text(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    shutil.copy(Path(os.environ["PROBE_WORLD"]) / "sentences.txt", folder / name)


ROWS = b"text\tlabel\n" + b"".join(b"the boat %d\t%s\n" % (row, (b"sea", b"air")[row % 2]) for row in range(20))
ALONE = b"text\tlabel\n" + b"".join(b"t %d\tc%d\n" % (n, n) for n in range(20))
LABELLED = [
    BadFile("plain text", "l.txt", LINES),
    BadFile("no label column", "l.tsv", b"text\tsize\na\t1\nb\t2\n", says="label"),
    BadFile("one class", "l.tsv", ROWS.replace(b"sea", b"air"), says="class"),
    BadFile("an empty label", "l.tsv", ROWS + b"a boat\t\n", says=":22: "),
    BadFile("a header alone", "l.tsv", b"text\tlabel\n"),
    BadFile("a row cut short", "l.tsv", ROWS + b"a boat\n", says=":22: 1 fields"),
    BadFile("a class for each text", "l.tsv", ALONE, expects="answered", says="Nothing could be held out"),
    BadFile("labels as lists", "l.jsonl", b'{"text": "a", "label": [1]}\n' * 5, says="list"),
    BadFile("labels as objects", "l.jsonl", b'{"text": "a", "label": {"b": 1}}\n' * 5),
    BadFile("latin1", "l.tsv", ROWS + b"caf\xe9\tsea\n", says="UTF-8"),
    BadFile("one long line", "l.tsv", ROWS + b"x" * 30_000_000 + b"\tsea\n", says="longer"),
    BadFile("a column twice", "l.csv", b"text,label,label\na,b,c\n", says="stands twice"),
    BadFile("missing", "l.tsv", lambda path: None, says="no such file"),
    BadFile("a folder", "l.tsv", lambda path: path.mkdir(), says="folder"),
    BadFile("a pipe", "l.tsv", lambda path: os.mkfifo(path), says="pipe"),
    BadFile("markup as labels", "l.tsv", ROWS.replace(b"sea", b"[/b]\x1b[31m:smile:"), expects="answered"),
    BadFile("numbers as labels", "l.tsv", ROWS.replace(b"sea", b"1").replace(b"air", b"2"), expects="answered"),
    BadFile("two texts of a class", "l.tsv", b"text\tlabel\na b\tx\nc d\tx\ne f\ty\ng h\ty\n", expects="answered"),
]


def _labelled() -> Iterator[Probe]:
    for file in LABELLED:
        named = tuple(word.replace("{file}", file.name) for word in HEAD)
        yield Probe("train head", file.label, named, file.make, file.expects, file.says)
    for flag, value in {"--learning-rate": "1e-3", "--max-steps": "5", "--resume": "", "--balanced": "perhaps"}.items():
        given = (flag, value) if value else (flag,)
        words = ("train", "head", "{world}/labelled.tsv", "--model", "{world}/tiny", "--output", "run", *given)
        yield Probe("train head", f"{flag} {value}", words, _needing("labelled.tsv"))
    words = ("train", "head", "{world}/labelled.tsv", "--model", "{world}/exported", "--output", "run")
    yield Probe("train head", "over an export", words, _needing("labelled.tsv", "exported"), "either")
    words = ("train", "head", "{world}/images", "--model", "{world}/image-model", "--output", "run")
    yield Probe("train head", "over images", words, _needing("images", "image-model"), "either")


FILTERS = (
    "",
    " ",
    "year",
    "year >",
    "> 5",
    "year > x",
    "year > 'x'",
    "years > 5",
    "year > 5 and",
    "(year > 5",
    "year > 5)",
    "year in ()",
    "year in (5",
    "year like 'a'",
    "label > 5",
    "label like 5",
    "label = 'a",
    "year = nan",
    "year = 1e999",
    "year = " + "9" * 5000,
    "not " * 5000 + "year = 1",
    "(" * 5000 + "year = 1" + ")" * 5000,
    "year = 1; drop table",
    "__import__('os').system('true')",
    "year = 1 or " * 3000 + "year = 2",
    "`year > 1",
    "year is",
    "\0",
    "[/b]",
)
ODD_QUERIES = {"empty": "", "blank": "  ", "half a character": "a\udcff", "too long": "a" * 100_001}
GOOD_QUERIES = ("[/b] list[int]", ":smile:", "\x1b[31mred", "👩‍👩‍👧 مرحبا", "zzzz qqqq", "x" * 90_000)


def _filters() -> Iterator[Probe]:
    for where in FILTERS:
        label = where[:30] if len(where) <= 30 else f"{where[:20]}… of {len(where)}"
        words = ("search", "{world}/index", "boat", "--where", where)
        yield Probe("search PLACE", f"filter {label!r}", words, _needing("index"))
        words = ("index", "{world}/tiny", "--output", "index", "--delete", where)
        yield Probe("index --delete", f"filter {label!r}", words, partial(copied, name="index", change=lambda at: None))
    for label, query in ODD_QUERIES.items():
        yield Probe("search PLACE", f"query {label}", ("search", "{world}/index", query), _needing("index"))
    for query in GOOD_QUERIES:
        for more in ((), ("--json",), ("--mode", "lexical")):
            words = ("search", "{world}/index", query, *more)
            yield Probe("search PLACE", f"query {query[:20]!r} {more}", words, _needing("index"), "answered")
    for label, more in {
        "mode": ("--mode", "best"),
        "columns": ("--columns", "text"),
        "dimensions": ("--truncate-dim", "4"),
    }.items():
        yield Probe("search PLACE", f"given {label}", ("search", "{world}/index", "boat", *more), _needing("index"))
    for place in ("nowhere", "{world}/tiny", "{world}/copy.txt", "", "milvus:", "http://", "milvus:a.db#b c", "\0"):
        yield Probe("search PLACE", f"place {place!r}", ("search", place, "boat"))
    for place in ("milvus:no.db", "http://127.0.0.1:1"):
        yield Probe("search PLACE", f"place {place!r}", ("search", place, "boat"), None, "refused")
    changed = _needing("labelled.tsv", make=_changed_text)
    yield Probe("search PLACE", "its text has changed", ("search", "index", "boat"), changed, says="has changed")
    words = ("search", "index", "boat", "--stale")
    yield Probe("search PLACE", "its text has changed, --stale", words, changed, "answered")
    for label, words in {
        "no text": ("index", "{world}/tiny", "--output", "place"),
        "update nothing": ("index", "{world}/tiny", "{world}/copy.txt", "--output", "place", "--update"),
        "add to nothing": ("index", "{world}/tiny", "{world}/copy.txt", "--output", "place", "--add"),
        "update and add": ("index", "{world}/tiny", "{world}/copy.txt", "--output", "place", "--add", "--update"),
        "delete from nothing": ("index", "{world}/tiny", "--output", "place", "--delete", "year > 5"),
        "an unknown precision": (*INDEX[:2], "{world}/copy.txt", *INDEX[3:], "--precision", "int3"),
        "an unknown column": (*INDEX[:2], "{world}/labelled.tsv", *INDEX[3:], "--columns", "txt"),
        "an unknown kept column": (*INDEX[:2], "{world}/labelled.tsv", *INDEX[3:], "--keep", "yeer"),
        "an unknown id": (*INDEX[:2], "{world}/labelled.tsv", *INDEX[3:], "--id-column", "name"),
        "an id twice": (*INDEX[:2], "{world}/labelled.tsv", *INDEX[3:], "--id-column", "label"),
        "columns of plain text": (*INDEX[:2], "{world}/copy.txt", *INDEX[3:], "--id-column", "label"),
        "one text twice": (*INDEX[:2], "{world}/copy.txt", "nobody.txt", *INDEX[3:]),
        "int8 in Milvus": (*INDEX[:2], "{world}/copy.txt", "--output", "milvus:a.db", "--precision", "int8"),
        "a server that is not there": (*INDEX[:2], "{world}/copy.txt", "--output", "http://127.0.0.1:1"),
        "another model": ("index", "{world}/exported", "{world}/copy.txt", "--output", "index", "--update"),
    }.items():
        make = _needing("labelled.tsv")
        if label == "another model":
            make = _needing("exported", make=partial(copied, name="index", change=lambda at: None))
        yield Probe("index", label, words, make)


def _changed_text(folder: Path) -> None:
    """An index whose text has one row more by now."""
    import isotrope

    shutil.copy(part("labelled.tsv"), folder / "l.tsv")
    isotrope.index(Path(os.environ["PROBE_WORLD"]) / "tiny", folder / "l.tsv", folder / "index", columns=["text"])
    with open(folder / "l.tsv", "a", encoding="utf-8") as file:
        file.write("one more boat\tsteers\t1\n")


def _edit(file: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(change(content)), encoding="utf-8")


def _with(**values: Any) -> Callable[[Any], Any]:
    return lambda content: {**content, **values}


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) * 3 // 4] ^= 64
    file.write_bytes(bytes(content))


def _remove(file: Path) -> None:
    file.unlink()


DAMAGES = {"emptied": _empty, "cut": _cut, "flipped": _flip, "removed": _remove}
INDEX_FILES = (
    "index.json",
    "blocks/*/vectors.npy",
    "blocks/*/rows*",
    "words-*/words.json",
    "words-*/data*",
    "words-*/vocab*",
)
INDEX_FILES += ("words-*/ind*", "codes-*", "ranges-*")
MANIFESTS: dict[str, Callable[[Any], Any]] = {
    "a list": lambda content: [],
    "another format": _with(format=99),
    "no blocks": lambda content: {**content, "parts": {}},
    "blocks outside": lambda content: {**content, "parts": {**content["parts"], "blocks": [["../../../tiny", 60]]}},
    "words outside": lambda content: {**content, "parts": {**content["parts"], "words": "../.."}},
    "fewer rows in a block": lambda content: _block_rows(content, 10),
    "dimension a word": _with(dimension="wide"),
    "dimension 3": _with(dimension=3),
    "another precision": _with(precision="int3"),
    "no kinds": lambda content: {name: value for name, value in content.items() if name != "kinds"},
    "an unknown kind": _with(kinds={"year": "colour"}),
    "a kind of another column": _with(kinds={"size": "number"}),
    "sources a word": _with(sources="all"),
    "no sources": _with(sources=[]),
    "another model": lambda content: {**content, "model": {**content["model"], "fingerprint": "0" * 16}},
    "a model that is gone": lambda content: {**content, "model": {**content["model"], "name": "/nowhere"}},
    "rows -1": _with(rows=-1),
}


def _manifest(place: Path, edit: Callable[[Any], Any]) -> None:
    """Without its checksum, as an earlier version or somebody else wrote it: what it says is still checked."""
    _edit(place / "index.json", lambda content: edit({name: content[name] for name in content if name != "check"}))


def _block_rows(content: Any, rows: int) -> Any:
    content["parts"]["blocks"][0][1] = rows
    return content


def _first(place: Path, pattern: str) -> Path:
    return next(iter(sorted(place.glob(pattern))))


def _damage(place: Path, pattern: str, how: Callable[[Path], None]) -> None:
    how(_first(place, pattern))


def _indexes() -> Iterator[Probe]:
    commands = {
        "search": ("search", "index", "the boat in the bay"),
        "serve": (*SERVE, "--index", "index"),
    }
    for command, words in commands.items():
        for pattern in INDEX_FILES:
            for label, how in DAMAGES.items():
                change = partial(_damage, pattern=pattern, how=how)
                make = partial(copied, name="index", change=change)
                yield Probe("damaged indexes", f"{command}: {pattern} {label}", words, make)
        for label, edit in MANIFESTS.items():
            if (command, label) == ("serve", "a model that is gone"):
                continue  # the model is given
            make = partial(copied, name="index", change=partial(_manifest, edit=edit))
            harmless = label in ("no sources", "rows -1", "a kind of another column", "an unknown kind")
            yield Probe("damaged indexes", f"{command}: {label}", words, make, "either" if harmless else "refused")


def _serving() -> Iterator[Probe]:
    for label, words in {
        "no such model": ("serve", "nowhere", "--port", "0"),
        "a file as model": ("serve", "{world}/copy.txt", "--port", "0"),
        "one name twice": ("serve", "a={world}/tiny", "a={world}/tiny", "--port", "0"),
        "an empty name": ("serve", "={world}/tiny", "--port", "0"),
        "no such index": (*SERVE, "--index", "nowhere"),
        "a model as index": (*SERVE, "--index", "{world}/tiny"),
        "no such host": (*SERVE, "--host", "no.such.host.invalid"),
        "a host of another machine": (*SERVE, "--host", "192.0.2.1"),
        "an empty host": (*SERVE, "--host", "a b"),
        "a port too high": ("serve", "{world}/tiny", "--port", "70000"),
        "no such key file": (*SERVE, "--api-key-file", "nowhere"),
        "a key folder": (*SERVE, "--api-key-file", "{world}/tiny"),
        "an empty key": (*SERVE, "--api-key-file", "empty"),
        "a short key": (*SERVE, "--api-key-file", "short"),
        "two keys": (*SERVE, "--api-key-file", "two"),
        "a key of bytes": (*SERVE, "--api-key-file", "bytes"),
        "a pipe as key": (*SERVE, "--api-key-file", "pipe"),
        "a model of images": ("serve", "{world}/image-model", "--port", "0", "--index", "{world}/index"),
    }.items():
        yield Probe("serve", label, words, _needing("image-model", "index", make=_keys))


def _keys(folder: Path) -> None:
    for name, content in {
        "empty": b"",
        "short": b"abc",
        "two": b"first-key second-key",
        "bytes": bytes(range(256)),
    }.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe")


CLASSIFIERS: dict[str, Change] = {
    **{
        f"classifier.json {label}": partial(_damage, pattern="classifier/classifier.json", how=how)
        for label, how in DAMAGES.items()
        if label != "flipped"
    },
    **{
        f"weights {label}": partial(_damage, pattern="classifier/model.safetensors", how=how)
        for label, how in DAMAGES.items()
        if label != "flipped"
    },
    "a class less": lambda at: _classifier(at, lambda found: {**found, "classes": found["classes"][:-1]}),
    "a class twice": lambda at: _classifier(at, lambda found: {**found, "classes": [found["classes"][0]] * 3}),
    "classes as numbers": lambda at: _classifier(at, _with(classes=[1, 2, 3])),
    "another task": lambda at: _classifier(at, _with(task="rank")),
    "temperature 0": lambda at: _classifier(at, _with(temperature=0)),
    "temperature a word": lambda at: _classifier(at, _with(temperature="warm")),
    "inputs 3": lambda at: _classifier(at, _with(inputs=3)),
    "activation unknown": lambda at: _classifier(at, _with(activations=["os.system"])),
    "weights of NaN": lambda at: _nan_weights(at / "classifier" / "model.safetensors"),
}


def _classifier(place: Path, change: Callable[[Any], Any]) -> None:
    _edit(place / "classifier" / "classifier.json", change)


def _nan_weights(file: Path) -> None:
    from safetensors.numpy import load_file, save_file

    found = load_file(file).items()
    save_file({name: np.full_like(value, np.nan) if value.dtype.kind == "f" else value for name, value in found}, file)


def _heads() -> Iterator[Probe]:
    for label, change in CLASSIFIERS.items():
        words = ("predict", "head", "{world}/copy.txt")
        yield Probe("damaged classifiers", label, words, partial(copied, name="head", change=change))
    for label, words in {
        "a model without a classifier": ("predict", "{world}/tiny", "{world}/copy.txt"),
        "no such column": ("predict", "{world}/head", "{world}/labelled.tsv", "--columns", "txt"),
        "a word that is no file": ("predict", "{world}/head", "boat"),
        "a blank text": ("predict", "{world}/head", "   "),
        "JSON onto another name": ("predict", "{world}/head", "{world}/copy.txt", "--json", "p.txt"),
        "images": ("predict", "{world}/head", "{world}/images"),
    }.items():
        yield Probe("predict", label, words, _needing("head", "labelled.tsv", "images"))
    for label, text in {
        "markup": "[/b] list[int] :smile:",
        "escape codes": "a \x1b[31mred",
        "no file name": "a " * 5000,
    }.items():
        yield Probe("predict", f"a text of {label}", ("predict", "{world}/head", text), _needing("head"), "answered")


EXPORTS: dict[str, Change] = {
    **{f"graph {label}": partial(_damage, pattern="onnx/model.onnx", how=how) for label, how in DAMAGES.items()},
    **{
        f"tokenizer {label}": partial(_damage, pattern="tokenizer.json", how=how)
        for label, how in DAMAGES.items()
        if label != "flipped"
    },
    "isotrope.json emptied": lambda at: (at / "isotrope.json").write_bytes(b""),
    "isotrope.json removed": lambda at: (at / "isotrope.json").unlink(),
    "no facts of the file": lambda at: _onnx(at, lambda found: {}),
    "facts a list": lambda at: _edit(at / "isotrope.json", lambda found: {**found, "onnx": []}),
    "a file outside": lambda at: _onnx(at, _with(file="../../tiny/model.safetensors")),
    "the file a number": lambda at: _onnx(at, _with(file=5)),
    "dimension a word": lambda at: _onnx(at, _with(dimension="wide")),
    "dimension 3": lambda at: _onnx(at, _with(dimension=3)),
    "max_length 0": lambda at: _onnx(at, _with(max_length=0)),
    "max_length a word": lambda at: _onnx(at, _with(max_length="long")),
    "sum a number": lambda at: _onnx(at, _with(sum=5)),
    "probe a word": lambda at: _onnx(at, _with(probe="quick")),
    "probe of another model": lambda at: _onnx(at, lambda found: {**found, "probe": [-one for one in found["probe"]]}),
    "prompt a list": lambda at: _onnx(at, _with(prompt=[1])),
}


def _onnx(place: Path, change: Callable[[Any], Any]) -> None:
    _edit(place / "isotrope.json", lambda found: {**found, "onnx": change(found["onnx"])})


def _exports() -> Iterator[Probe]:
    for label, change in EXPORTS.items():
        words = ("encode", "exported", "{world}/copy.txt", "--output", "v.npy")
        yield Probe("damaged exports", label, words, partial(copied, name="exported", change=change))
    for label, words in {
        "an export again": ("export", "{world}/exported", "out"),
        "no such model": ("export", "nowhere", "out"),
        "no such text": ("export", "{world}/tiny", "out", "--text", "nowhere.txt"),
        "an unknown column": ("export", "{world}/tiny", "out", "--text", "{world}/labelled.tsv", "--columns", "txt"),
        "a model of images": ("export", "{world}/image-model", "out"),
        "train an export": ("train", "simcse", "{world}/copy.txt", "--model", "{world}/exported", "--output", "run"),
        "a space of an export": ("fit-space", "sbert-wk", "{world}/exported", "{world}/copy.txt", "--output", "m"),
    }.items():
        yield Probe("export", label, words, _needing("exported", "labelled.tsv", "image-model"))
    for file in TEXTS[:30]:
        if file.expects == "refused":
            words = ("export", "{world}/tiny", "out", "--text", file.name)
            yield Probe("export", f"text: {file.label}", words, file.make, file.expects, file.says)


def _shards() -> Iterator[Probe]:
    again = ("encode", "{world}/tiny", "{world}/sentences.txt", "--shards", "shards", "--shard-size", "16")
    for pattern in ("00000001.npy", "00000001.json", "done.json"):
        for label, how in DAMAGES.items():
            make = partial(copied, name="shards", change=partial(_damage, pattern=pattern, how=how))
            yield Probe("shards", f"{pattern} {label}", (*again, "--output", "v.npy"), make, "answered")
    for label, how in {"emptied": _empty, "cut": _cut}.items():
        make = partial(copied, name="shards", change=partial(_damage, pattern="plan.json", how=how))
        yield Probe("shards", f"plan.json {label}", again, make, "either")
    for label, words in {
        "another text": (*again[:2], "{world}/labelled.tsv", *again[3:]),
        "another model": (again[0], "{world}/head", *again[2:]),
        "another size": (*again[:-1], "5"),
        "another form": (*again, "--normalize"),
        "int8 without ranges": (*again, "--precision", "int8"),
        "ranges of another form": (*again, "--precision", "int8", "--ranges", "shards/plan.json"),
        "Ray, without shards": ("encode", "{world}/tiny", "{world}/sentences.txt", "--output", "v.npy", "--ray"),
        "images": ("encode", "{world}/image-model", "{world}/images", "--shards", "shards"),
        "neither output nor shards": ("encode", "{world}/tiny", "{world}/sentences.txt"),
    }.items():
        make = _needing(
            "labelled.tsv", "head", "images", "image-model", make=partial(copied, name="shards", change=lambda at: None)
        )
        expects = "either" if label == "another model" else "refused"  # a head leaves the vectors as they are
        yield Probe("shards", label, words, make, expects)


def _npz(path: Path, **arrays: Any) -> None:
    np.savez(path, **arrays)


def _pixels(*shape: int) -> Any:
    return np.zeros(shape, dtype=np.uint8)


IMAGE_SOURCES: dict[str, tuple[str, Change, str]] = {
    "missing": ("i.npz", lambda path: None, "no such file"),
    "a pipe as npz": ("i.npz", lambda path: os.mkfifo(path), "pipe"),
    "a pipe as picture": ("i.png", lambda path: os.mkfifo(path), "pipe"),
    "empty npz": ("i.npz", lambda path: path.write_bytes(b""), "npz"),
    "text as npz": ("i.npz", lambda path: path.write_bytes(LINES), "npz"),
    "npz cut short": ("i.npz", lambda path: (_npz(path, images=_pixels(8, 16, 16, 3)), _cut(path)), "npz"),
    "npz of nothing": ("i.npz", lambda path: _npz(path), "arrays found"),
    "npz of numbers": ("i.npz", lambda path: _npz(path, images=np.arange(8)), "arrays found"),
    "npz of no images": ("i.npz", lambda path: _npz(path, images=_pixels(0, 16, 16, 3)), "no images"),
    "npz of five colours": ("i.npz", lambda path: _npz(path, images=_pixels(8, 16, 16, 5)), "shape"),
    "npz of floats beyond 1": ("i.npz", lambda path: _npz(path, images=np.full((8, 16, 16, 3), 7.0)), "fractions"),
    "npz of NaN": ("i.npz", lambda path: _npz(path, images=np.full((8, 16, 16, 3), np.nan)), "fractions"),
    "npz of words": ("i.npz", lambda path: _npz(path, images=np.full((8, 16, 16, 3), "a")), ""),
    "npz of objects": ("i.npz", lambda path: _npz(path, images=np.array([{}] * 8, dtype=object)), "npz"),
    "npz of complex": ("i.npz", lambda path: _npz(path, images=np.zeros((8, 16, 16, 3), dtype=complex)), ""),
    "npz of no side": ("i.npz", lambda path: _npz(path, images=_pixels(8, 0, 16, 3)), "shape"),
    "fewer labels": ("i.npz", lambda path: _npz(path, images=_pixels(8, 16, 16, 3), labels=np.arange(3)), "labels"),
    "labels beyond the classes": (
        "i.npz",
        lambda path: _npz(path, images=_pixels(8, 16, 16, 3), labels=np.arange(8), classes=np.array(["a"])),
        "classes",
    ),
    "jpeg of garbage": (
        "i.npz",
        lambda path: _npz(path, jpeg=_pixels(100), offsets=np.arange(0, 101, 10)),
        "image",
    ),
    "offsets of words": ("i.npz", lambda path: _npz(path, jpeg=_pixels(100), offsets=np.array(["a", "b"])), ""),
    "offsets a number": ("i.npz", lambda path: _npz(path, jpeg=_pixels(100), offsets=np.array(5)), ""),
    "offsets of floats": (
        "i.npz",
        lambda path: _npz(path, jpeg=_pixels(100), offsets=np.array([0.0, 50.0, 100.0])),
        "",
    ),
    "an empty folder": ("i", lambda path: path.mkdir(), "no images"),
    "a folder of text": ("i", lambda path: (path.mkdir(), (path / "a.txt").write_bytes(LINES)), ""),
    "pictures of text": ("i", lambda path: _files(path, {f"{n}.png": LINES for n in range(8)}), "image"),
    "empty pictures": ("i", lambda path: _files(path, {f"{n}.png": b"" for n in range(8)}), "image"),
    "pictures that are folders": ("i", lambda path: [(path / f"{n}.png").mkdir(parents=True) for n in range(4)], ""),
    "pictures that are pipes": ("i", lambda path: (path.mkdir(), [os.mkfifo(path / f"{n}.png") for n in range(4)]), ""),
    "links to nowhere": (
        "i",
        lambda path: (path.mkdir(), [(path / f"{n}.png").symlink_to("gone") for n in range(4)]),
        "",
    ),
    "some in sub-folders": ("i", lambda path: _files(path, {"a.png": b"", "b/a.png": b""}), "sub-folders"),
    "splits": ("i", lambda path: _files(path, {"train/a/1.png": b"", "test/a/1.png": b""}), "train"),
    "metadata: not JSON": ("i", lambda path: _metadata(path, "metadata.jsonl", b"{"), "metadata"),
    "metadata: deep": ("i", lambda path: _metadata(path, "metadata.jsonl", b"[" * 100_000), "metadata"),
    "metadata: a number": ("i", lambda path: _metadata(path, "metadata.jsonl", b"5"), "file_name"),
    "metadata: a number as name": (
        "i",
        lambda path: _metadata(path, "metadata.jsonl", b'{"file_name": 5}'),
        "file_name",
    ),
    "metadata: a list as name": (
        "i",
        lambda path: _metadata(path, "metadata.jsonl", b'{"file_name": ["a"]}'),
        "file_name",
    ),
    "metadata: a file outside": (
        "i",
        lambda path: _metadata(path, "metadata.jsonl", b'{"file_name": "../b.png"}'),
        "outside",
    ),
    "metadata: the root": (
        "i",
        lambda path: _metadata(path, "metadata.jsonl", b'{"file_name": "/etc/passwd"}'),
        "outside",
    ),
    "metadata: a NUL": ("i", lambda path: _metadata(path, "metadata.jsonl", b'{"file_name": "a\\u0000b.png"}'), ""),
    "metadata: gone": ("i", lambda path: _metadata(path, "metadata.jsonl", b'{"file_name": "gone.png"}'), "image"),
    "metadata: no column": ("i", lambda path: _metadata(path, "metadata.csv", b"name,label\na.png,b\n"), "file_name"),
    "metadata: a NUL in csv": ("i", lambda path: _metadata(path, "metadata.csv", b"file_name\n\0\n"), ""),
    "metadata: a huge field": ("i", lambda path: _metadata(path, "metadata.csv", b"file_name\n" + b"x" * 200_000), ""),
    "metadata: latin1": ("i", lambda path: _metadata(path, "metadata.csv", b"file_name\ncaf\xe9.png\n"), "metadata"),
    "metadata: empty": ("i", lambda path: _metadata(path, "metadata.csv", b""), ""),
    "metadata: a folder": ("i", lambda path: (path / "metadata.csv").mkdir(parents=True), ""),
    "parquet of garbage": ("i.parquet", lambda path: _parquet(path, [b"x"] * 8), "image"),
    "parquet of nothing": ("i.parquet", lambda path: _parquet(path, []), "no images"),
    "parquet of nulls": ("i.parquet", lambda path: _parquet(path, [None] * 8), "image"),
    "parquet cut short": ("i.parquet", lambda path: (_parquet(path, [b"x"] * 8), _cut(path)), ""),
    "a bomb": ("i", lambda path: _bomb(path), "image"),
    "one picture of text": ("i.png", lambda path: path.write_bytes(LINES), "image"),
}


def _files(folder: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _metadata(folder: Path, name: str, content: bytes) -> None:
    picture = next(part("images").rglob("*.png")).read_bytes()
    _files(folder, {"a.png": picture, "../b.png": picture, name: content})


def _parquet(path: Path, cells: list[bytes | None]) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"image": pyarrow.array(cells, pyarrow.binary())}), path)


def _bomb(folder: Path) -> None:
    """A PNG of a few bytes that says it has a hundred thousand pixels a side."""
    import struct
    import zlib

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    _files(folder, {f"{number}.png": png for number in range(4)})


def _images() -> Iterator[Probe]:
    commands = {
        "train simclr": ("train", "simclr", "{file}", *IMAGES),
        "encode images": ("encode", "{world}/image-model", "{file}", "--output", "v.npy"),
    }
    for command, words in commands.items():
        for label, (name, make, says) in IMAGE_SOURCES.items():
            named = tuple(word.replace("{file}", name) for word in words)
            made = _needing("images", "image-model", make=lambda folder, make=make, name=name: make(folder / name))
            yield Probe(command, label, named, made, "refused", says)
    for label, words in {
        "a method about text": ("train", "cosent", "{world}/images", *IMAGES),
        "a network that is none": ("train", "simclr", "{world}/images", "--model", "conv:0", *IMAGES[2:]),
        "a side too small": ("train", "simclr", "{world}/images", "--model", "conv:4@2", *IMAGES[2:]),
        "a width beyond memory": ("train", "simclr", "{world}/images", "--model", "conv:9999999@16", *IMAGES[2:]),
        "no network of timm": ("train", "simclr", "{world}/images", "--model", "timm:nobody", *IMAGES[2:]),
        "a model of text": ("train", "simclr", "{world}/images", "--model", "{world}/tiny", *IMAGES[2:]),
        "a pooling": ("train", "simclr", "{world}/images", *IMAGES, "--pooling", "cls"),
        "fewer images than a batch": (
            "train",
            "simclr",
            "{world}/images",
            *IMAGES[:4],
            "--batch-size",
            "1000",
            *IMAGES[6:],
        ),
        "text encoded by images": ("encode", "{world}/image-model", "{world}/copy.txt", "--output", "v.npy"),
        "images encoded by text": ("encode", "{world}/tiny", "{world}/images", "--output", "v.npy"),
        "images in int8": (
            *commands["encode images"][:2],
            "{world}/images",
            "--output",
            "v.npy",
            "--precision",
            "int8",
        ),
        "images searched by words": ("search", "{world}/image-model", "{world}/images", "a boat"),
        "images searched by text": ("search", "{world}/image-model", "{world}/images", "{world}/copy.txt"),
        "images indexed": ("index", "{world}/image-model", "{world}/images", "--output", "place"),
        "images checked": ("check", "{world}/images"),
        "evaluated on text": ("evaluate", "{world}/image-model", "--suite", "geometry", "--text", "{world}/copy.txt"),
    }.items():
        yield Probe("images", label, words, _needing("images", "image-model"))
    for label, words in {
        "encoded": ("encode", "{world}/image-model", "{world}/images", "--output", "v.npy"),
        "trained": ("train", "simclr", "{world}/images", *IMAGES),
    }.items():
        yield Probe("images", label, words, _needing("images", "image-model"), "answered")


IMAGE_MODELS: dict[str, Change] = {
    **{
        f"weights {label}": partial(_damage, pattern="model.safetensors", how=how)
        for label, how in DAMAGES.items()
        if label != "flipped"
    },
    **{
        f"config {label}": partial(_damage, pattern="config.json", how=how)
        for label, how in DAMAGES.items()
        if label != "flipped"
    },
    "NaN weights": lambda at: _nan_weights(at / "model.safetensors"),
    "a network of code": lambda at: _vision(at, _with(network="timm:../evil")),
    "a network unknown": lambda at: _vision(at, _with(network="os.system")),
    "a width beyond memory": lambda at: _vision(at, _with(network="conv:9999999")),
    "another width": lambda at: _vision(at, _with(network="conv:8")),
    "size 0": lambda at: _vision(at, _with(size=0)),
    "size a word": lambda at: _vision(at, _with(size="small")),
    "size beyond memory": lambda at: _vision(at, _with(size=10**9)),
    "another hidden size": lambda at: _vision(at, _with(hidden_size=7)),
    "std 0": lambda at: _vision(at, _with(std=[0, 0, 0])),
    "two colours": lambda at: _vision(at, _with(mean=[0, 0])),
    "mean a word": lambda at: _vision(at, _with(mean="dark")),
    "an unknown key": lambda at: _vision(at, _with(colour="blue")),
    "a key missing": lambda at: _vision(at, lambda found: {"network": "conv:4"}),
    "a list": lambda at: _edit(at / "config.json", lambda found: {"image_encoder": [1]}),
    "a number": lambda at: _edit(at / "config.json", lambda found: {"image_encoder": 5}),
}


def _vision(place: Path, change: Callable[[Any], Any]) -> None:
    _edit(place / "config.json", lambda found: {**found, "image_encoder": change(found["image_encoder"])})


def _image_models() -> Iterator[Probe]:
    for label, change in IMAGE_MODELS.items():
        words = ("encode", "image-model", "{world}/images", "--output", "v.npy")
        make = _needing("images", make=partial(copied, name="image-model", change=change))
        yield Probe("damaged image models", label, words, make)


def _nan_model(folder: Path) -> None:
    _own_model(folder)
    _nan_weights(folder / "tiny" / "model.safetensors")


def _nan_models() -> Iterator[Probe]:
    """A model of NaN weights makes no vector that anybody could use."""
    for command, words in {
        "encode": ("encode", "tiny", "{world}/copy.txt", "--output", "v.npy"),
        "encode --shards": ("encode", "tiny", "{world}/copy.txt", "--shards", "s", "--output", "v.npy"),
        "index": ("index", "tiny", "{world}/copy.txt", "--output", "place"),
        "index int8": ("index", "tiny", "{world}/copy.txt", "--output", "place", "--precision", "int8"),
        "search": ("search", "tiny", "{world}/labelled.tsv", "boat", "--columns", "text"),
        "export": ("export", "tiny", "out"),
        "export --int8": ("export", "tiny", "out", "--int8"),
        "train head": ("train", "head", "{world}/labelled.tsv", "--model", "tiny", "--output", "run"),
        "distil": ("distil", "tiny", "{world}/copy.txt", "--output", "m", "--epochs", "1"),
        "fit-space": ("fit-space", "whitening", "tiny", "{world}/copy.txt", "--output", "m"),
    }.items():
        yield Probe("NaN models", command, words, _needing("labelled.tsv", make=_nan_model), says="NaN|number|finite")


def _pushes() -> Iterator[Probe]:
    """The hub is switched off in the world of the probes: nothing is ever sent."""
    for label, words in {
        "no such folder": ("push", "nowhere", "me/model"),
        "a text": ("push", "{world}/copy.txt", "me/model"),
        "an index": ("push", "{world}/index", "me/model"),
        "no hub": ("push", "{world}/tiny", "me/model"),
        "a licence of markup": ("push", "tiny", "me/model", "--license", "a\nb: [c"),
        **{
            f"repo {repo!r}": ("push", "{world}/tiny", repo) for repo in ("", "a/b/c", "a b", "../x", "[/b]", "a" * 300)
        },
    }.items():
        yield Probe("push", label, words, _needing("index", make=_own_model))


def _own_model(folder: Path) -> None:
    shutil.copytree(Path(os.environ["PROBE_WORLD"]) / "tiny", folder / "tiny")


def _checks() -> Iterator[Probe]:
    for label, words in {
        "an unknown record type": ("check", "{world}/copy.txt", "--record-type", "poems"),
        "an unknown column": ("check", "{world}/labelled.tsv", "--columns", "txt"),
        "no such model": ("check", "{world}/copy.txt", "--model", "nowhere"),
        "no such data": ("check", "{world}/copy.txt", "--model", "{world}/tiny", "--data-dir", "nowhere"),
        "text and table": ("check", "{world}/copy.txt", "{world}/labelled.tsv", "--model", "{world}/tiny"),
        "a file twice, one missing": ("check", "{world}/copy.txt", "gone.txt", "--model", "{world}/tiny"),
    }.items():
        yield Probe("check", label, words, _needing("labelled.tsv"), "either" if "table" in label else "refused")
