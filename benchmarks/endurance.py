"""Train, evaluate, index, search and predict again and again in one process: memory, open files, threads stay flat.

    python benchmarks/endurance.py --minutes 60

The first rounds fill caches and are left out. The last line says by how much memory rises in an hour, by least squares,
and how many files and threads the last round has more than the first that counts. ``heap_mb`` is what is in use by
glibc's count: resident memory also holds what is free between the pieces, and so may rise later, and in steps.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import shutil
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
from workbench import _status, real_sentences

WARM = 5  # rounds


class Heap(ctypes.Structure):
    """What glibc's ``mallinfo2`` gives."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in "arena a b c mapped d e used free keep".split())


def heap_in_use() -> float:
    """MB; 0 where the C library does not say."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0.0
    library.mallinfo2.restype = Heap
    found = library.mallinfo2()
    return round((found.used + found.mapped) / 1e6, 1)


def round_of_work(folder: Path, text: Path, labelled: Path, number: int) -> None:
    """Everything that a long process may do, each time in folders that are removed again."""
    import isotrope

    work = folder / "work"
    run = isotrope.train(
        "simcse",
        text,
        model="builtin-base",
        output=work / "run",
        max_steps=4,
        eval_steps=2,
        batch_size=16,
        max_length=32,
        held_out=100,
        seed=number,
        final_table=False,
    )
    isotrope.evaluate(run.encoder, "geometry", texts=text, leaks=False)
    isotrope.check(text)
    isotrope.encode("builtin-static", text, work / "v.npy")
    isotrope.search("builtin-static", text, f"round {number}")
    isotrope.index("builtin-static", labelled, work / "index", columns=["text"])
    isotrope.index("builtin-static", labelled, work / "index", delete="label = 'few'")
    isotrope.search(work / "index", [f"round {number}", "a second query"], where="label = 'many'")
    isotrope.train("head", labelled, model="builtin-static", output=work / "head", seed=number)
    isotrope.predict(work / "head" / "model", labelled, columns=["text"], output=work / "predictions.tsv")
    shutil.rmtree(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with tempfile.TemporaryDirectory() as place:
        os.environ["ISOTROPE_CACHE"] = str(Path(place, "cache"))
        text, labelled = Path(place, "text.txt"), Path(place, "labelled.tsv")
        sentences = real_sentences(500)
        text.write_text("\n".join(sentences) + "\n", encoding="utf-8")
        rows_of_text = [f"{one}\t{'many' if len(one.split()) > 12 else 'few'}" for one in sentences if "\t" not in one]
        labelled.write_text("\n".join(["text\tlabel", *rows_of_text]) + "\n", encoding="utf-8")
        begun = time.monotonic()
        while time.monotonic() - begun < 60 * given.minutes or len(rows) < WARM + 2:
            round_of_work(Path(place), text, labelled, len(rows))
            gc.collect()
            row = {
                "minute": round((time.monotonic() - begun) / 60, 2),
                "resident_mb": round(_status("VmRSS") / 1e6, 1),
                "heap_mb": heap_in_use(),
                "files": len(os.listdir("/proc/self/fd")),
                "threads": threading.active_count(),
            }
            rows.append(row)
            print(f"round {len(rows)}: {row}", flush=True)
    kept = rows[WARM:]
    slope = np.polyfit([row["minute"] for row in kept], [row["resident_mb"] for row in kept], 1)[0]
    more = {name: kept[-1][name] - kept[0][name] for name in ("files", "threads")}
    print(
        f"{len(rows)} rounds in {rows[-1]['minute']} minutes: {kept[0]['resident_mb']} MB after {WARM + 1} rounds, "
        f"{kept[-1]['resident_mb']} MB at the end ({slope / kept[-1]['resident_mb'] * 6000:+.1f} % an hour by least "
        f"squares), heap in use {kept[0]['heap_mb']} to {kept[-1]['heap_mb']} MB, {more['files']:+d} files, "
        f"{more['threads']:+d} threads"
    )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
