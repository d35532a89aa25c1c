"""Isotrope's encode against sentence-transformers' on the same folder and the same real sentences.

    python benchmarks/encode.py [--quick] [--json] [--threads N] [--model builtin] [--int8]

Both run in this process, in turns, so that a busy machine slows both alike; the ratio is the median over the turns.
``--int8``: ours is the export of `isotrope export --int8`. Times are printed, never asserted. Memory is the growth of
the process's resident set over one encode, in a process of its own.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from workbench import Contest, make_model, print_result, real_sentences, resident_growth, use_threads


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="300 sentences and 3 turns instead of 2,000 and 7")
    options.add_argument("--json", action="store_true", help="for machines")
    options.add_argument("--threads", type=int, help="of torch; 1 is the steadiest where others use the machine")
    options.add_argument("--model", help="instead of a model of the same size with random weights")
    options.add_argument("--int8", action="store_true", help="ours through onnxruntime, quantised")
    options.add_argument("--memory-of", choices=CONTESTANTS, help=argparse.SUPPRESS)  # how this script calls itself
    options.add_argument("--folder", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    use_threads(chosen.threads)
    sentences = real_sentences(300 if chosen.quick else 2000)
    if chosen.memory_of:
        encode = CONTESTANTS[chosen.memory_of](chosen.folder, chosen.int8)
        encode(sentences[:8])  # what a first call allocates for ever is not the price of the texts
        print(resident_growth(lambda: encode(sentences)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = str(Path(temporary) / "model")
        model = open_model(chosen.model) if chosen.model else make_model(sentences)
        model.save(folder)
        if chosen.int8:
            export(model, Path(folder + INT8), sentences[:256])
        encoders = {name: load(folder, chosen.int8) for name, load in CONTESTANTS.items()}
        ours, theirs = (encode(sentences) for encode in encoders.values())
        contest = Contest({name: lambda encode=encode: encode(sentences) for name, encode in encoders.items()})
        result = contest.run(turns=3 if chosen.quick else 7)
        more = ["--int8"] if chosen.int8 else []
        result.memory = {name: contest.memory_of(__file__, name, folder, chosen.quick, *more) for name in CONTESTANTS}
    cosines = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    print_result(
        result,
        f"encode {len(sentences):,} sentences{' in int8' if chosen.int8 else ''}",
        len(sentences),
        "sentences/s",
        {"mean cosine": float(cosines.mean()), "least cosine": float(cosines.min())},
        chosen.json,
    )


def open_model(name: str):
    from isotrope.encoders.loading import load

    return load(name, device="cpu")


def export(model, folder: Path, texts: list[str]) -> None:
    from isotrope.encoders.onnx_export import export

    export(model, folder, True, texts)


def isotrope(folder: str, int8: bool):
    return open_model(folder + INT8 if int8 else folder).encode


def sentence_transformers(folder: str, int8: bool):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    return lambda texts: model.encode(texts, batch_size=32)


INT8 = "-int8"
CONTESTANTS = {"isotrope": isotrope, "sentence-transformers": sentence_transformers}

if __name__ == "__main__":
    main()
