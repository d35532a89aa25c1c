"""Isotrope's encode against sentence-transformers' on the same folder and the same real sentences.

    python benchmarks/encode.py [--quick] [--json] [--threads N]

Both run in this process, in turns, so that a busy machine slows both alike; the ratio is the median over the turns.
Times are printed, never asserted. Memory is the growth of the process's resident set over one encode, in a process of
its own.
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
    options.add_argument("--memory-of", choices=CONTESTANTS, help=argparse.SUPPRESS)  # how this script calls itself
    options.add_argument("--folder", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    use_threads(chosen.threads)
    sentences = real_sentences(300 if chosen.quick else 2000)
    if chosen.memory_of:
        encode = CONTESTANTS[chosen.memory_of](chosen.folder)
        encode(sentences[:8])  # what a first call allocates for ever is not the price of the texts
        print(resident_growth(lambda: encode(sentences)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = str(Path(temporary) / "model")
        make_model(sentences).save(folder)
        encoders = {name: load(folder) for name, load in CONTESTANTS.items()}
        ours, theirs = (encode(sentences) for encode in encoders.values())
        contest = Contest({name: lambda encode=encode: encode(sentences) for name, encode in encoders.items()})
        result = contest.run(turns=3 if chosen.quick else 7)
        result.memory = {name: contest.memory_of(__file__, name, folder, chosen.quick) for name in CONTESTANTS}
    difference = float(np.abs(ours - theirs).max())
    print_result(
        result,
        f"encode {len(sentences):,} sentences",
        len(sentences),
        "sentences/s",
        {"largest difference": difference},
        chosen.json,
    )


def isotrope(folder: str):
    from isotrope.encoders.loading import load

    return load(folder, device="cpu").encode


def sentence_transformers(folder: str):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    return lambda texts: model.encode(texts, batch_size=32)


CONTESTANTS = {"isotrope": isotrope, "sentence-transformers": sentence_transformers}

if __name__ == "__main__":
    main()
