"""SentEval's own data folder: ``downstream/`` and ``probing/``, as its download script leaves them.

    downstream/MR/rt-polarity.pos, .neg · CR/custrev.pos, .neg · SUBJ/subj.objective, .subjective · MPQA/mpqa.pos, .neg
    downstream/SST/binary/sentiment-train, -dev, -test · SST/fine/… · TREC/train_5500.label, TREC_10.label
    downstream/MRPC/msr_paraphrase_train.txt, _test.txt · SICK/SICK_train.txt, _trial.txt, _test_annotated.txt
    downstream/SNLI/s1.train, s2.train, labels.train, … · STS/STSBenchmark/sts-train.csv, -dev.csv, -test.csv
    probing/sentence_length.txt and nine more: split, label, sentence

Encodings are those of its code: Latin-1 for MR, CR, SUBJ, MPQA, TREC and SNLI, UTF-8 elsewhere. A text without words is
read as ".", as its batchers do, so that the counts are the published ones. Lines end at line feeds alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from isotrope.errors import InputError
from isotrope.evaluation.linear import Labelled
from isotrope.evaluation.scored_pairs import ScoredPairs

Part = tuple[str, ...]  # the files of a part
FILES: dict[str, tuple[Part, ...]] = {
    "MR": (("MR/rt-polarity.pos", "MR/rt-polarity.neg"),),
    "CR": (("CR/custrev.pos", "CR/custrev.neg"),),
    "SUBJ": (("SUBJ/subj.objective", "SUBJ/subj.subjective"),),
    "MPQA": (("MPQA/mpqa.pos", "MPQA/mpqa.neg"),),
    "SST2": tuple((f"SST/binary/sentiment-{part}",) for part in ("train", "dev", "test")),
    "SST5": tuple((f"SST/fine/sentiment-{part}",) for part in ("train", "dev", "test")),
    "TREC": (("TREC/train_5500.label",), ("TREC/TREC_10.label",)),
    "MRPC": (("MRPC/msr_paraphrase_train.txt",), ("MRPC/msr_paraphrase_test.txt",)),
    "SICK-E": tuple((f"SICK/SICK_{part}.txt",) for part in ("train", "trial", "test_annotated")),
    "SICK-R": tuple((f"SICK/SICK_{part}.txt",) for part in ("train", "trial", "test_annotated")),
    "STS-B": tuple((f"STS/STSBenchmark/sts-{part}.csv",) for part in ("train", "dev", "test")),
    "SNLI": tuple((f"SNLI/s1.{part}", f"SNLI/s2.{part}", f"SNLI/labels.{part}") for part in ("train", "dev", "test")),
}
LATIN = ("MR", "CR", "SUBJ", "MPQA", "TREC", "SNLI")
EMPTY = "."
SPLITS = {"train": "tr", "dev": "va", "test": "te"}


def downstream_of(folder: Path) -> Path | None:
    """The folder ``downstream`` in SentEval's data folder, or in SentEval itself; none elsewhere."""
    return next((place for place in (folder / "downstream", folder / "data" / "downstream") if place.is_dir()), None)


def probing_of(folder: Path) -> Path | None:
    """The folder of SentEval's probing files, if they are its own: plain .txt files."""
    places = (folder / "probing", folder / "data" / "probing")
    return next((place for place in places if place.is_dir() and any(place.glob("*.txt"))), None)


def find_files(folder: Path, task: str) -> list[Part] | None:
    """The files of each part of a task; none where one is missing."""
    parts = [tuple(str(folder / name) for name in part) for part in FILES[task]]
    return parts if all(Path(name).is_file() for part in parts for name in part) else None


def missing_file(folder: Path, task: str) -> Path:
    return next(folder / name for part in FILES[task] for name in part if not (folder / name).is_file())


def read_part(task: str, files: Sequence[str]) -> Labelled:
    """Texts and labels of a part. Labels are those of the files; in MR, CR, MPQA and SUBJ, 1 for the first file."""
    return _checked(files, READERS.get(task, _two_files)(files))


def read_scored(task: str, files: Sequence[str]) -> ScoredPairs:
    """SICK-R and STS-B: pairs with their scores."""
    first, second, score = (1, 2, 3) if task == "SICK-R" else (5, 6, 4)
    rows = _columns(files[0], max(first, second, score), skip=task == "SICK-R")
    try:
        gold = np.array([float(row[score]) for row in rows])
    except ValueError as error:
        raise InputError(f"{files[0]}: {str(error).split(':')[-1].strip()} is no score.") from error
    if len(rows) < 2:
        raise InputError(f"{files[0]}: at least two scored pairs were expected, {len(rows)} found.")
    return ScoredPairs(
        [_words(row[first]) for row in rows], [_words(row[second]) for row in rows], gold, [""] * len(rows)
    )


def read_probing(file: str) -> list[Labelled]:
    """The train, dev and test part of a probing file."""
    rows = _columns(file, 2)
    parts = []
    for name, split in SPLITS.items():
        some = [row for row in rows if row[0] == split]
        if not some:
            raise InputError(f"{file}: no row of split {split} ({name}).")
        parts.append(Labelled(([_words(row[2]) for row in some],), [row[1] for row in some]))
    return parts


def _two_files(files: Sequence[str]) -> Labelled:
    sides = [[_words(line) for line in _lines(file, "latin-1")] for file in files]
    return Labelled((sides[0] + sides[1],), ["1"] * len(sides[0]) + ["0"] * len(sides[1]))


def _sentiment(files: Sequence[str]) -> Labelled:
    rows = _columns(files[0], 1)
    return Labelled(([_words(row[0]) for row in rows],), [row[1].strip() for row in rows])


def _questions(files: Sequence[str]) -> Labelled:
    """``DESC:manner How did serfdom develop …``: the coarse class is before the colon."""
    rows = [line.partition(":") for line in _lines(files[0], "latin-1") if line.strip()]
    odd = next((row for row in rows if not row[1]), None)
    if odd is not None:
        raise InputError(f"{files[0]}: '{odd[0][:40]}' does not begin with a class and a colon.")
    return Labelled(([_words(rest.partition(" ")[2]) for _, _, rest in rows],), [label for label, _, _ in rows])


def _paraphrases(files: Sequence[str]) -> Labelled:
    rows = _columns(files[0], 4, skip=True)
    return Labelled(
        ([_words(row[3]) for row in rows], [_words(row[4]) for row in rows]), [row[0].strip() for row in rows]
    )


def _entailment(files: Sequence[str]) -> Labelled:
    rows = _columns(files[0], 4, skip=True)
    texts = [_words(row[1]) for row in rows], [_words(row[2]) for row in rows]
    return Labelled(texts, [row[4].strip().lower() for row in rows])


def _inference(files: Sequence[str]) -> Labelled:
    first, second, labels = ([line.strip() for line in _lines(file, "latin-1")] for file in files)
    if not len(first) == len(second) == len(labels):
        raise InputError(f"{files[0]}: {len(first)} lines, but {len(second)} and {len(labels)} in the other two files.")
    return Labelled(([_words(text) for text in first], [_words(text) for text in second]), labels)


READERS: dict[str, Callable[[Sequence[str]], Labelled]] = {
    "SST2": _sentiment,
    "SST5": _sentiment,
    "TREC": _questions,
    "MRPC": _paraphrases,
    "SICK-E": _entailment,
    "SNLI": _inference,
}


def _lines(file: str, encoding: str = "utf-8-sig") -> list[str]:
    """As Python's own reading of lines: a form feed or a next-line character does not end one."""
    try:
        with open(file, encoding=encoding) as opened:
            return [line.rstrip("\n") for line in opened]
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8, as SentEval's file is (byte {error.start}).") from error


def _columns(file: str, last: int, skip: bool = False) -> list[list[str]]:
    """The rows of a table, of at least ``last`` + 1 columns; ``skip``: without the header."""
    rows = [line.split("\t") for line in _lines(file)[skip:] if line.strip()]
    short = next((number for number, row in enumerate(rows, 1 + skip) if len(row) <= last), None)
    if short is not None:
        raise InputError(f"{file}:{short}: {last + 1} columns, separated by tabs, were expected.")
    return rows


def _words(text: str) -> str:
    return " ".join(text.split()) or EMPTY


def _checked(files: Sequence[str], part: Labelled) -> Labelled:
    if not part.labels:
        raise InputError(f"{files[0]}: no labelled texts found.")
    return part
