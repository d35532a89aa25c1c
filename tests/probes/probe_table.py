"""Every probe: bad files over all commands that read files, bad values of every setting, odd outputs, broken models."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bad_files import RECIPES, SCORED, TEXTS, VECTORS, WIKI, BadFile
from later_probes import later_probes
from probe_runner import Make, Probe

from isotrope.catalogue import all_cards, describe_pretraining, describe_settings

NUMBERS = ("nan", "inf", "-inf", "1e30", "-1e30", "x", "")  # no setting takes one of these
TINY = ("--model", "{world}/tiny")
SHORT = ("--max-steps", "1", "--batch-size", "4", "--held-out", "4", "--no-final-table", "--output", "run")
SMALL = ("--vocabulary", "60", "--layers", "1", "--width", "16", "--heads", "2", "--length", "16", "--steps", "1")
# By command, its words with {file} for the file of sentences.
READERS: dict[str, tuple[str, ...]] = {
    "encode": ("encode", "{world}/tiny", "{file}", "--output", "v.npy"),
    "search": ("search", "{world}/tiny", "{file}", "the boat", "--top", "50"),
    "train": ("train", "simcse", "{file}", *TINY, *SHORT),
    "pretrain": ("pretrain", "{file}", "--output", "run", *SMALL, "--warmup-steps", "0", "--batch-size", "2"),
    "check": ("check", "{file}", *TINY),
    "paraphrase": ("paraphrase", "{file}", *TINY, "--output", "p.tsv"),
    "fit-space": ("fit-space", "standardise", "{world}/tiny", "{file}", "--output", "m"),
    "evaluate": ("evaluate", "{world}/tiny", "--suite", "geometry", "--text", "{file}"),
    "report": ("report", "{world}/tiny", "--text", "{file}", "--output", "r.json", "--sentences", "10"),
    "leaks": ("leaks", "{file}", "--against", "{world}/sentences.txt", "--output", "clean"),
    "leaks against": ("leaks", "{world}/sentences.txt", "--against", "{file}", "--output", "clean"),
    "compare": (
        "compare",
        "{file}",
        "--methods",
        "simcse",
        *TINY,
        "--seeds",
        "1",
        "--suite",
        "label-free",
        "--max-steps",
        "1",
        "--batch-size",
        "4",
        "--held-out",
        "4",
        "--output",
        "all",
    ),
}
TABLES = ("parquet", "json", "csv", "tsv")  # leaks looks at lines of .txt and .tsv, and refuses these in other words
PAIR_READERS: dict[str, tuple[str, ...]] = {
    "mine": (
        "mine",
        "{file}",
        *TINY,
        "--output",
        "t.tsv",
        "--first",
        "1",
        "--last",
        "3",
        "--columns",
        "sentence1,sentence2",
    ),
    "train cosent": ("train", "cosent", "{file}", *TINY, *SHORT),
    "train eval_data": ("train", "simcse", "{world}/sentences.txt", *TINY, *SHORT, "--eval-data", "{file}"),
}
# By command, good words and the options that take a number.
OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mine": (("mine", "{world}/pairs.tsv", *TINY, "--output", "t.tsv"), ("--first", "--last", "--margin", "--seed")),
    "paraphrase": (
        ("paraphrase", "{world}/sentences.txt", *TINY, "--output", "p.tsv"),
        ("--share", "--seed", "--beams", "--temperature"),
    ),
    "report": (
        ("report", "{world}/tiny", "--text", "{world}/sentences.txt", "--output", "r.json"),
        ("--sentences", "--seed"),
    ),
    "evaluate": (("evaluate", "{world}/tiny", "--suite", "geometry", "--text", "{world}/sentences.txt"), ("--seed",)),
    "check": (("check", "{world}/sentences.txt", *TINY), ("--max-length", "--batch-size", "--sample")),
    "links": (("links", "{world}/wiki.jsonl", "--output", "l.tsv"), ("--min-links",)),
    "search": (("search", "{world}/tiny", "{world}/copy.txt", "boat"), ("--top",)),
    "compare": (
        ("compare", "{world}/sentences.txt", "--methods", "simcse", *TINY, "--output", "all"),
        ("--seeds", "--trials", "--parallel", "--budget"),
    ),
}
# Outputs that cannot be, of the commands that write one file.
OUTPUTS = {
    "a folder in the way": ("taken{suffix}", lambda folder, suffix: (folder / f"taken{suffix}").mkdir()),
    "below a file": ("taken/a{suffix}", lambda folder, suffix: (folder / "taken").write_text("mine")),
    "a name too long": ("x" * 300 + "{suffix}", lambda folder, suffix: None),
    "in a folder of the system": ("/proc/a{suffix}", lambda folder, suffix: None),
    "an empty name": ("", lambda folder, suffix: None),
    "another suffix": ("a.doc", lambda folder, suffix: None),
}
WRITERS = {"encode": ".npy", "paraphrase": ".tsv", "mine": ".tsv", "report": ".json", "links": ".tsv"}


def all_probes() -> list[Probe]:
    own = (_texts, _pairs, _other_files, _settings, _options, _outputs, _names, _models)
    return [*(probe for group in own for probe in group()), *later_probes()]


def _with_file(group: str, words: tuple[str, ...], file: BadFile, expects: str | None = None) -> Probe:
    named = tuple(word.replace("{file}", file.name) for word in words)
    return Probe(group, file.label, named, file.make, expects or file.expects, file.says)


def _texts() -> Iterator[Probe]:
    for command, words in READERS.items():
        for file in TEXTS:
            if command.startswith("leaks") and file.label.startswith(TABLES):
                yield _with_file(command, words, BadFile(file.label, file.name, file.content))
            else:
                yield _with_file(command, words, file)


def _pairs() -> Iterator[Probe]:
    for command, words in PAIR_READERS.items():
        for file in SCORED:
            if command == "mine" and ("score" in file.label or file.label == "a column missing"):
                continue  # the column of scores is not asked for
            if command == "train eval_data" and file.label == "a column missing":
                file = BadFile(file.label, file.name, file.content)  # it is read as queries and passages
            yield _with_file(command, words, file)


def _other_files() -> Iterator[Probe]:
    for name, text in RECIPES.items():
        file = BadFile(name, "r.yaml", text.encode())
        words = ("train", "simcse", "{world}/sentences.txt", *TINY, *SHORT, "--config", "r.yaml")
        yield _with_file("recipe", words, file)
    for file in WIKI:
        yield _with_file("links", ("links", "{file}", "--output", "l.tsv"), file)
    for file in VECTORS:
        words = ("encode", "{file}", "{world}/sentences.txt", "--output", "v.npy")
        yield _with_file("word vectors", words, file)


def _settings() -> Iterator[Probe]:
    """Every number of every method, space and of pre-training, with values that none of them takes."""
    seen = set()
    for card in all_cards():
        if card.kind not in ("training", "space", "head"):
            continue
        for setting in describe_settings(card.name):
            key = (setting.owner, setting.name)
            if not setting.range or setting.range.startswith("one of") or key in seen:
                continue
            seen.add(key)
            if card.kind == "space":
                words = ("fit-space", card.name, "{world}/tiny", "{world}/sentences.txt", "--output", "m.tsv")
            else:
                words = ("train", card.name, "{world}/sentences.txt", "--output", "run")
            yield from _numbers(f"settings of {setting.owner}", words, setting.name)
    for setting in describe_pretraining():
        if setting.range and not setting.range.startswith("one of"):
            words = ("pretrain", "{world}/sentences.txt", "--output", "run")
            yield from _numbers("settings of pretrain", words, setting.name)


def _numbers(group: str, words: tuple[str, ...], name: str) -> Iterator[Probe]:
    flag = name if name.startswith("--") else f"--{name.replace('_', '-')}"
    for value in NUMBERS:
        yield Probe(group, f"{flag} {value or 'empty'}", (*words, f"{flag}={value}"))


def _options() -> Iterator[Probe]:
    for command, (words, flags) in OPTIONS.items():
        for flag in flags:
            yield from _numbers(f"options of {command}", words, flag)
            yield Probe(f"options of {command}", f"{flag} -1", (*words, f"{flag}=-1"))


def _outputs() -> Iterator[Probe]:
    good = {**{name: words for name, (words, _) in OPTIONS.items()}, "encode": READERS["encode"]}
    for command, suffix in WRITERS.items():
        base = tuple(word.replace("{file}", "{world}/sentences.txt") for word in good[command])
        at = base.index("--output")
        for label, (output, make) in OUTPUTS.items():
            words = (*base[: at + 1], output.replace("{suffix}", suffix), *base[at + 2 :])
            yield Probe("outputs", f"{command}: {label}", words, partial(make, suffix=suffix))


def _copied(folder: Path, name: str, source: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)  # [/b] is a folder and a file
    shutil.copy(Path(os.environ["PROBE_WORLD"]) / source, folder / name)


def _names() -> Iterator[Probe]:
    """Names of files that a terminal or a table could take for something else."""
    odd = ("[/b].txt", "[red]a.txt", "a\nb.txt", ":smile:.txt", "-a.txt", "\x1b[31m.txt", "a\udcff.txt", "ü€.txt")
    for name in odd:
        for command in ("encode", "search", "check", "train", "evaluate", "leaks"):
            words = tuple(word.replace("{file}", f"./{name}") for word in READERS[command])
            make: Make = partial(_copied, name=name, source="sentences.txt")
            expects = "answered" if "\udcff" not in name else "refused"
            yield Probe("names", f"{command} {name!r}", words, make, expects)
            yield Probe("names", f"{command} missing {name!r}", words)


DAMAGES: dict[str, Any] = {
    "no config": lambda folder: (folder / "config.json").unlink(),
    "empty config": lambda folder: (folder / "config.json").write_text(""),
    "config is a list": lambda folder: (folder / "config.json").write_text("[]"),
    "heads 0": lambda folder: _changed(folder, "config.json", num_attention_heads=0),
    "width a word": lambda folder: _changed(folder, "config.json", hidden_size="wide"),
    "unknown architecture": lambda folder: _changed(folder, "config.json", model_type="strange"),
    "code in the folder": lambda folder: _changed(folder, "config.json", auto_map={"AutoModel": "evil.Model"}),
    "fewer layers": lambda folder: _changed(folder, "config.json", num_hidden_layers=1),
    "more layers": lambda folder: _changed(folder, "config.json", num_hidden_layers=3),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "empty weights": lambda folder: (folder / "model.safetensors").write_bytes(b""),
    "weights cut short": lambda folder: os.truncate(folder / "model.safetensors", 5000),
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "empty tokenizer": lambda folder: (folder / "tokenizer.json").write_text(""),
    "tokenizer is a list": lambda folder: (folder / "tokenizer.json").write_text("[]"),
    "empty modules": lambda folder: (folder / "modules.json").write_text(""),
    "modules is a word": lambda folder: (folder / "modules.json").write_text('"a"'),
    "a module outside": lambda folder: _module(folder, path="../../elsewhere"),
    "an unknown module": lambda folder: _module(folder, type="os.system"),
    "no pooling": lambda folder: shutil.rmtree(next(folder.glob("1_*"))),
}


def _changed(folder: Path, name: str, **values: Any) -> None:
    content = json.loads((folder / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps({**content, **values}), encoding="utf-8")


def _module(folder: Path, **values: str) -> None:
    content = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    content[1] |= values
    (folder / "modules.json").write_text(json.dumps(content), encoding="utf-8")


def _damaged(folder: Path, damage: Any) -> None:
    shutil.copytree(Path(os.environ["PROBE_WORLD"]) / "tiny", folder / "model")
    damage(folder / "model")


def _models() -> Iterator[Probe]:
    for label, damage in DAMAGES.items():
        make: Make = partial(_damaged, damage=damage)
        for command in ("encode", "train"):
            words = tuple(
                word.replace("{world}/tiny", "model").replace("{file}", "{world}/sentences.txt")
                for word in READERS[command]
            )
            expects = "either" if label == "code in the folder" else "refused"  # a known model needs no code
            yield Probe("model folders", f"{command}: {label}", words, make, expects)
