"""The files of the benchmarks that no training text may hold."""

from __future__ import annotations

import os
from pathlib import Path

from isotrope.evaluation.sts import data_folder


def protected_files(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """What an encoder is judged by: every STS file, and the transfer sets but their training splits.

    STS-B's training split is protected as well, because it holds pairs of STS12–16.
    """
    folder = data_folder(data_dir)
    transfer = [file for file in sorted(folder.glob("transfer/*.tsv*")) if ".train." not in file.name]
    return [*sorted(folder.glob("sts/*.tsv*")), *transfer]
