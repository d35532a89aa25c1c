"""Run by torchrun in two processes: is what they compute together what one process computes alone?

torchrun --nproc-per-node 2 worker.py MODEL SENTENCES TRIPLES OUTPUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as distributed

import isotrope
from isotrope.data.batches import batches
from isotrope.data.corpus import Corpus, Records, open_corpus
from isotrope.methods.base import Batch, Method
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings, WithMaskedLanguageModel
from isotrope.methods.registry import find
from isotrope.training.gathering import average_gradients
from isotrope.training.loop import make_accelerator
from isotrope.training.optimiser import trainable
from isotrope.training.settings import LoopSettings
from isotrope.training.step import _represent, compute_gradient

GLOBAL = 12


def build(name: str, folder: str, mlm: bool) -> Method:
    torch.manual_seed(0)
    encoder = isotrope.load(folder, pooling="cls", device="cpu", language_head=mlm)
    method: Method = find(name)(find(name).Settings(), encoder, 64)
    if mlm:
        method = WithMaskedLanguageModel(method, MaskedLanguageModel(MLMSettings(), encoder, 64), 0.1)
    return method.train()


def corpus_of(method: Method, source: str, kind: str) -> Corpus:
    tokeniser = method.encoder.tokeniser
    return open_corpus(source, (kind,), tokeniser.flat, tokeniser.fingerprint(), tokeniser.vocabulary)


def part(method: Method, corpus: Corpus, rows: np.ndarray, rank: int) -> Batch:
    mine = rows[rank * GLOBAL // 2 : (rank + 1) * GLOBAL // 2].tolist()
    return Batch(method.views(Records(corpus, mine), np.random.default_rng([0, rank])), len(mine), 5)


def gradients_agree(name: str, kind: str, folder: str, source: str, mlm: bool, chunk: int | None) -> None:
    """Two processes with half a batch each, dropout on, against both halves in one process under the same masks."""
    accelerator = make_accelerator(LoopSettings())
    rank = accelerator.process_index
    together, alone = build(name, folder, mlm), build(name, folder, mlm)
    corpus = corpus_of(together, source, kind)
    rows = next(batches("unique", corpus, np.arange(len(corpus)), GLOBAL, 0, 0))
    outcome = compute_gradient(together, part(together, corpus, rows, rank), accelerator, (1, 2, rank), chunk)
    average_gradients(trainable(together))

    halves = []
    for other in range(2):
        chunks = part(alone, corpus, rows, other).chunks(chunk)
        halves += [_represent(alone, piece, accelerator, (1, 2, other, number)) for number, piece in enumerate(chunks)]
    terms = alone.loss({key: torch.cat([half[key] for half in halves]) for key in halves[0]}, part(alone, corpus, rows, rank))
    alone.total(terms).backward()
    assert abs(float(outcome.loss) - float(alone.total(terms))) < 1e-5, (name, float(outcome.loss), float(alone.total(terms)))
    assert outcome.candidates == (2 * GLOBAL if kind == "triples" else GLOBAL), outcome.candidates
    largest = 0.0
    for (key, first), second in zip(together.named_parameters(), alone.parameters(), strict=True):
        expected = torch.zeros_like(second) if second.grad is None else second.grad
        assert first.grad is not None
        assert torch.allclose(first.grad, expected, atol=1e-5), (name, key, float((first.grad - expected).abs().max()))
        largest = max(largest, float(expected.abs().max()))
    assert largest > 1e-2  # a test of zeros would prove nothing


def main(folder: str, sentences: str, triples: str, output: str) -> None:
    make_accelerator(LoopSettings())
    assert distributed.get_world_size() == 2
    assert "gloo" in distributed.get_backend_config(), distributed.get_backend_config()
    gradients_agree("simcse", "sentences", folder, sentences, mlm=False, chunk=None)
    gradients_agree("simcse", "sentences", folder, sentences, mlm=True, chunk=None)
    gradients_agree("simcse-supervised", "triples", folder, triples, mlm=False, chunk=None)
    gradients_agree("simcse-supervised", "triples", folder, triples, mlm=False, chunk=4)
    run = isotrope.train(
        "simcse-supervised", triples, model=folder, output=output, pooling="cls", max_steps=6, batch_size=16, eval_steps=3, held_out=20,
        learning_rate=1e-3, dropout=0.0, logging_steps=1,
    )  # fmt: skip
    mine = torch.cat([p.detach().flatten() for p in run.encoder.parameters()])
    theirs = [torch.empty_like(mine) for _ in range(2)]
    distributed.all_gather(theirs, mine)
    assert torch.equal(theirs[0], theirs[1])  # both processes end with the same weights
    if distributed.get_rank() == 0:
        Path(output, "agreed").touch()
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
