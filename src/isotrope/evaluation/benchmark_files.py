"""The folder of evaluation data, the file of a task in it, and the files that no training text may hold."""

from __future__ import annotations

import os
from pathlib import Path

from isotrope.errors import InputError

VARIABLE = "ISOTROPE_DATA"
SUFFIXES = (".tsv.gz", ".tsv", ".tsv.xz", ".csv", ".jsonl", ".parquet")


def data_folder(given: str | os.PathLike[str] | None) -> Path:
    """The evaluation data: the folder that was given, or the one that the variable ISOTROPE_DATA names."""
    place = given or os.environ.get(VARIABLE)
    if not place:
        raise InputError(
            f"Evaluation data is needed: give data_dir, or set {VARIABLE} to a folder with sts/sts12.test.tsv.gz "
            "and so on. Text of your own needs none: give scored pairs as texts, or choose suite retrieval for "
            "pairs, linear for labelled text, geometry for any text."
        )
    folder = Path(place)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of evaluation data.")
    return folder


def has_data(given: str | os.PathLike[str] | None) -> bool:
    """Whether a folder of evaluation data was named at all."""
    return bool(given or os.environ.get(VARIABLE))


def find_task(folder: Path, name: str) -> Path:
    """The file of a task, in whichever format it is; a missing one is refused."""
    found = optional_task(folder, name)
    if found is None:
        raise InputError(f"{folder}: {name}.tsv.gz is missing; all tasks of the suite were expected there.")
    return found


def optional_task(folder: Path, name: str) -> Path | None:
    """As ``find_task``; none where the file is missing."""
    files = (folder / f"{name}{suffix}" for suffix in SUFFIXES)
    return next((file for file in files if file.is_file()), None)


def protected_files(data_dir: str | os.PathLike[str] | None = None, tests_only: bool = False) -> list[Path]:
    """What an encoder is judged by: every STS file, and the transfer sets but their training splits.

    STS-B's training split is protected as well, because it holds pairs of STS12–16. ``tests_only``: without the train,
    dev and trial splits of either; a transfer set without splits is a test set as a whole.
    """
    folder = data_folder(data_dir)
    left_out = (".train.", ".dev.", ".trial.") if tests_only else ()
    sts = [file for file in sorted(folder.glob("sts/*.tsv*")) if not any(part in file.name for part in left_out)]
    transfer = sorted(folder.glob("transfer/*.tsv*"))
    return [*sts, *(file for file in transfer if not any(part in file.name for part in (".train.", *left_out)))]
