"""What travels to a lent machine and back: data in parts, weights as half-precision files with checksums.

    carried.py parts WORK MIB FILE…       files of WORK, in this order → WORK/parts/1, 2, … of at most MIB each
    carried.py take WORK PART…            on the machine: the files of these parts, where they were in WORK
    carried.py split MODEL OUTPUT [MIB]   a model folder → OUTPUT/NAME.*.part of at most MIB (15) each, NAME.sums
    carried.py join NAME.sums OUTPUT      the folder again, weights in float32; a wrong checksum is refused

Half precision costs 0.0005 of a weight's size at most, less than the packing that ships.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import shutil
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from safetensors.torch import load, save

MIB = 2**20


def parts(work: Path, most: str, *files: str) -> None:
    """Each goes to the first part that has room for it. A file that does not fit is cut at ends of lines, and stays
    readable by itself (``name.2.txt.xz``)."""
    sizes, limit = [0], int(float(most) * MIB)
    shutil.rmtree(work / "parts", ignore_errors=True)
    for name in files:
        for piece, content in _pieces(work / name, limit):
            place = next((place for place, size in enumerate(sizes) if size + len(content) <= limit), len(sizes))
            sizes += [0] * (place + 1 - len(sizes))
            sizes[place] += len(content)
            target = work / "parts" / str(place + 1) / Path(name).parent / piece
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            print(f"part {place + 1}: {Path(name).parent / piece}, {len(content) / MIB:.2f} MiB", flush=True)
    print(f"{len(sizes)} parts of {', '.join(f'{size / MIB:.1f}' for size in sizes)} MiB")


def _pieces(path: Path, limit: int) -> list[tuple[str, bytes]]:
    """Corpora are lower-cased, as the encoder reads them, and cut between documents into fifths of a part."""
    if not path.name.endswith(".txt.xz"):
        return [(path.name, path.read_bytes())]
    with lzma.open(path, "rt", encoding="utf-8") as file:
        text = file.read().lower()
    step = int(0.7 * limit)  # characters; xz leaves about a quarter of them
    pieces, start = [], 0
    while start < len(text):
        stop = text.find("\n\n", start + step)
        stop = len(text) if stop < 0 else stop + 2
        pieces.append(text[start:stop])
        start = stop
    stem = path.name.removesuffix(".txt.xz")
    names = [f"{stem}.txt.xz"] if len(pieces) == 1 else [f"{stem}.{k}.txt.xz" for k in range(1, len(pieces) + 1)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # lzma works without the interpreter's lock
        packed = list(pool.map(lambda piece: lzma.compress(piece.encode(), preset=9), pieces))
    return list(zip(names, packed, strict=True))


def take(work: Path, *found: str) -> None:
    for part in map(Path, found):
        shutil.copytree(part, work, dirs_exist_ok=True)


def split(model: Path, output: str, most: str = "15") -> None:
    """One archive of the folder, weights as float16, cut into parts."""
    packed, files = io.BytesIO(), sorted(path for path in model.rglob("*") if path.is_file())
    if not files:
        raise SystemExit(f"{model}: no model is here; train it first.")
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for file in files:
            content = _changed(file, torch.float32, torch.float16)
            entry = tarfile.TarInfo(file.relative_to(model).as_posix())
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    whole, size, folder = packed.getvalue(), int(float(most) * MIB), Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    title = model.resolve().parent.name if model.name == "model" else model.name
    sums = []
    for number, start in enumerate(range(0, len(whole), size), 1):
        content, name = whole[start : start + size], f"{title}.{number:02d}.part"
        (folder / name).write_bytes(content)
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}")
    (folder / f"{title}.sums").write_text("\n".join(sums) + "\n")
    print("\n".join(sums))


def join(sums: Path, output: str) -> None:
    content = b""
    for line in sums.read_text().splitlines():
        wanted, name = line.split("  ")
        part = (sums.parent / name).read_bytes()
        if hashlib.sha256(part).hexdigest() != wanted:
            raise SystemExit(f"{sums.parent / name}: its checksum is not that of {sums.name}; fetch it again.")
        content += part
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(output, filter="data")
    for file in Path(output).rglob("*.safetensors"):
        file.write_bytes(_changed(file, torch.float16, torch.float32))


def _changed(file: Path, before: torch.dtype, after: torch.dtype) -> bytes:
    """The file's content, with weights of one precision in the other."""
    content = file.read_bytes()
    if file.suffix != ".safetensors":
        return content
    weights = {name: one.to(after) if one.dtype == before else one for name, one in load(content).items()}
    return save(weights, metadata={"format": "pt"})


if __name__ == "__main__":
    stage, place, *rest = sys.argv[1:]
    {"parts": parts, "take": take, "split": split, "join": join}[stage](Path(place), *rest)
