"""word2vec here and in gensim, one after the other in one process: words per second, their ratio, and STS-B dev of
both.

Both get the same words (ours), one thread, the same dimension, window, negatives, threshold and epochs; both sentence
vectors are the mean weighted by a/(a + p). Words are counted before thinning. Reading, counting and tokenizing are left
out on both sides.

python benchmarks/word2vec.py TEXT [--lines 60000] [--epochs 1] [--form skip-gram] [--sts STSB.dev.tsv.gz]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

import isotrope
from isotrope.data.sentence_files import sentences_of
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.evaluation.sts import spearman_of_file
from isotrope.tokens.word_vocabulary import SPECIALS
from isotrope.training import run as training_run


def ours(texts: list[str], form: str, epochs: float, device_rate: dict[str, float]) -> Encoder:
    loop = training_run.train_loop

    def timed(*given: Any, **named: Any) -> Any:
        start = time.process_time(), time.perf_counter()
        finished = loop(*given, **named)
        device_rate["cpu"], device_rate["wall"] = time.process_time() - start[0], time.perf_counter() - start[1]
        return finished

    training_run.train_loop = timed
    try:
        with tempfile.TemporaryDirectory() as folder:
            common = {"form": form, "epochs": epochs, "eval_steps": 1 << 30, "logging_steps": 100}
            return isotrope.train("word2vec", texts, output=Path(folder) / "run", final_table=False, **common).encoder
    finally:
        training_run.train_loop = loop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--form", default="skip-gram", choices=["skip-gram", "cbow"])
    parser.add_argument("--sts", type=Path, help="Scored pairs, such as STS-B dev.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    texts = list(islice(sentences_of(given.text), given.lines))

    taken: dict[str, float] = {}
    encoder = ours(texts, given.form, given.epochs, taken)
    backend = encoder.tokenizer.backend_tokenizer
    ids = [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]
    counts = np.bincount([word for text in ids for word in text], minlength=encoder.text_tokenizer.vocabulary)
    words = int(counts[len(SPECIALS) :].sum()) * given.epochs
    rates = {"isotrope": words / taken["cpu"]}
    print(
        f"isotrope  {words / taken['wall']:>10,.0f} words/s  "
        f"{rates['isotrope']:>10,.0f} words a second of processor time"
    )
    models = {"isotrope": encoder}

    try:
        from gensim.models import Word2Vec
    except ImportError:
        print("gensim is not installed: no ratio; pip install gensim.")
    else:
        names = encoder.tokenizer.convert_ids_to_tokens(range(len(counts)))
        lists = [[names[word] for word in text if word >= len(SPECIALS)] for text in ids]
        shared = {
            "vector_size": 100,
            "window": 5,
            "negative": 5,
            "sample": 1e-3,
            "min_count": 5,
            "workers": 1,
            "seed": 42,
        }
        theirs = Word2Vec(sg=int(given.form == "skip-gram"), **shared)
        theirs.build_vocab(lists)
        start = time.process_time(), time.perf_counter()
        theirs.train(lists, total_examples=len(lists), epochs=given.epochs)
        cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
        rates["gensim"] = words / cpu
        print(f"gensim    {words / wall:>10,.0f} words/s  {rates['gensim']:>10,.0f} words a second of processor time")
        print(f"ratio     {rates['isotrope'] / rates['gensim']:.2f} (isotrope / gensim, by processor time)")
        table = torch.zeros(len(counts), 100)
        for place, name in enumerate(names):
            if name in theirs.wv:
                table[place] = torch.from_numpy(theirs.wv[name].copy())
        backbone = StaticVectors(table)
        backbone.weigh(torch.from_numpy(1e-3 / (1e-3 + counts / counts.sum())).float())
        models["gensim"] = Encoder(backbone, encoder.tokenizer)
    for name, model in models.items() if given.sts else ():
        print(f"{name:<9} STS-B Spearman {100 * spearman_of_file(model, given.sts):.2f}")


if __name__ == "__main__":
    main()
