"""Several files, or standard input, as one data file: training reads its data more than once, and so needs a file.

Plain texts are joined with a blank line between them, so that no document goes on from one file to the next. Tables are
joined row by row where they have the same columns. The joined file is kept in the cache under a name made of its
content: the same files are written once, and a run can say later what it was trained on.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from isotrope.data.cache_folders import is_whole_file, write_sum
from isotrope.data.packed_streams import unpacking
from isotrope.data.prose_files import is_prose
from isotrope.data.tables import check_file, check_unchanged, content_of, format_of, header_of, table_of
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, written_file

STANDARD_INPUT = "-"
TEXTS = (".txt", ".tsv", ".csv", ".jsonl", ".gz", ".xz", "")  # endings that no image has
Place = str | os.PathLike[str]


def one_file(given: Sequence[Place], stream: IO[bytes] | None = None) -> Path:
    """The file itself where one is given, else all of them joined; ``-`` is standard input, or ``stream``.

    A single source of images, or of documents, is given back as it is: whoever reads it checks it, and a run remembers
    its name.
    """
    if len(given) == 1 and (_may_hold_images(Path(given[0])) or is_prose(given[0])):
        return Path(given[0])
    if sum(str(place) == STANDARD_INPUT for place in given) > 1:
        raise InputError("Standard input (-) can be read once; name it once.")
    files = [_from_stream(stream) if str(place) == STANDARD_INPUT else check_file(place) for place in given]
    return files[0] if len(files) == 1 else join_files(files)


def join_files(files: Sequence[Path]) -> Path:
    """One file of the content of all of them."""
    plain = [format_of(file) == ".txt" for file in files]
    if any(plain) and not all(plain):
        text, table = files[plain.index(True)], files[plain.index(False)]
        raise InputError(f"{text} is plain text and {table} is a table; give files of one of the two.")
    headers = {} if all(plain) else {file: tuple(sorted(header_of(file) or ())) for file in files}
    if len(set(headers.values())) > 1:
        other = next(file for file in files if headers[file] != headers[files[0]])
        raise InputError(
            f"{files[0]} has the columns {', '.join(headers[files[0]])}, and {other} has {', '.join(headers[other])}; "
            "give files with the same columns."
        )
    contents = [content_of(file) for file in files]
    name = digest(*contents)
    target = cache_folder() / "joined" / f"{name}{'.txt' if all(plain) else '.jsonl'}"
    if not is_whole_file(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with written_file(target) as temporary, open(temporary, "w", encoding="utf-8") as out:
            for number, file in enumerate(files):
                out.write("\n" if number and all(plain) else "")
                out.writelines(f"{line}\n" for line in (_lines(file) if all(plain) else _rows(file)))
                check_unchanged(file, contents[number])
        write_sum(target)
    return target


def _may_hold_images(path: Path) -> bool:
    if path.suffix.lower() in TEXTS and (path.suffix or not path.is_dir()):
        return False
    from isotrope.data.image_sources import is_image_source  # numpy is imported by need only

    return is_image_source(path)


def _lines(file: Path) -> Iterator[str]:
    return (line for _, line in lines_of(file))


def _rows(file: Path) -> Iterator[str]:
    with unpacking(file):
        for _, row in table_of(file)[1]:
            yield _json_line({name: _plain(cell) for name, cell in row.items()})


def _json_line(row: dict[str, Any]) -> str:
    """A row as a line that can be written; half a character stays spelled out, for the reader to refuse."""
    line = json.dumps(row, ensure_ascii=False, default=str)
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(row, default=str)
    return line


def _plain(cell: Any) -> Any:
    """A cell as JSON holds it: bytes are text, as the reader of one file has them, and NaN is a missing number."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="surrogateescape")
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    if isinstance(cell, dict):
        return {name: _plain(one) for name, one in cell.items()}
    return [_plain(one) for one in cell] if isinstance(cell, list | tuple) else cell


def _from_stream(stream: IO[bytes] | None) -> Path:
    """Standard input, kept whole. Its first line says what it is: JSON lines, a table with tabs, or plain text."""
    content = (sys.stdin.buffer if stream is None else stream).read()
    if not content.strip():
        raise InputError("Standard input is empty; pipe one sentence a line into the command, or name a file.")
    first = content.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    suffix = ".jsonl" if first.startswith(b"{") else ".tsv" if b"\t" in first else ".txt"
    target = cache_folder() / "joined" / f"{digest(content)}{suffix}"
    if not is_whole_file(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with written_file(target) as temporary:
            temporary.write_bytes(content)
        write_sum(target)
    return target
