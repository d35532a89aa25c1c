"""Run by torchrun in two processes, once for all tests: gradients with dropout on, then two steps of every method.

torchrun --nproc-per-node 2 worker.py CASES OUTPUT

CASES is a file with the model, the texts of the gradients, and for each case what ``isotrope.train`` takes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
import torch.distributed as distributed

import isotrope
from isotrope.data.batches import batches
from isotrope.data.corpus import Corpus, Records, open_corpus
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Added, Combined
from isotrope.methods.frame.method_registry import find
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.training import run, updates
from isotrope.training.gathering import average_gradients
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import trainable
from isotrope.training.state import Judgement
from isotrope.training.step import compute_gradient, represent
from isotrope.training.step_folder import weights_of

GLOBAL = 12


def build(name: str, folder: str, mlm: bool) -> Combined:
    torch.manual_seed(0)
    encoder = isotrope.load(folder, pooling="cls", device="cpu", language_head=mlm)
    method = find(name)(find(name).Settings(), encoder, 64)
    added = [Added(MaskedLanguageModel(MLMSettings(), encoder, 64), 0.1)] if mlm else []
    return Combined(method, added).train()


def corpus_of(method: Combined, source: str, kind: str) -> Corpus:
    tokenizer = method.encoder.text_tokenizer
    return open_corpus(source, (kind,), tokenizer)


def part(method: Combined, corpus: Corpus, rows: np.ndarray, rank: int) -> Batch:
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
        halves += [represent(alone, piece, accelerator, (1, 2, other, number)) for number, piece in enumerate(chunks)]
    terms = alone.loss(
        {key: torch.cat([half[key] for half in halves]) for key in halves[0]},
        part(alone, corpus, rows, rank).generator(),
    )
    alone.total(terms).backward()
    assert abs(float(outcome.loss) - float(alone.total(terms))) < 1e-5, (
        name,
        float(outcome.loss),
        float(alone.total(terms)),
    )
    assert outcome.candidates == (2 * GLOBAL if kind == "triples" else GLOBAL), outcome.candidates
    largest = 0.0
    for (key, first), second in zip(together.named_parameters(), alone.parameters(), strict=True):
        assert (first.grad is None) == (second.grad is None), (name, key)  # one of zeros would let it decay
        if first.grad is None or second.grad is None:
            continue
        assert torch.allclose(first.grad, second.grad, atol=1e-5), (name, key)
        largest = max(largest, float(second.grad.abs().max()))
    assert largest > 1e-2  # a test of zeros would prove nothing


def descend(case: dict[str, Any], output: Path) -> dict[str, torch.Tensor]:
    """Train by plain gradient descent, and return all weights and buffers as the last step left them.

    Adam divides a gradient by its own size: what is rounding in one that should be zero would be a whole step, and a
    gradient that is twice too large would be the same step.
    """
    seen: dict[str, torch.Tensor] = {}
    build_adam, finish = updates.build_optimiser, Combined.after_update

    def descent(method: Combined, settings: LoopSettings) -> torch.optim.Optimizer:
        groups = build_adam(method, settings).param_groups
        return torch.optim.SGD([{"params": group["params"], "lr": group["lr"]} for group in groups])

    def noting(self: Combined, representations: dict[str, torch.Tensor]) -> None:
        finish(self, representations)
        seen.update({name: tensor.clone() for name, tensor in weights_of(self).items()})

    with (
        patch.object(updates, "build_optimiser", descent),
        patch.object(Combined, "after_update", noting),
        # A method's own task makes views, with random numbers of its own.
        patch.object(run, "with_own_task", lambda *_: unjudged()),
    ):
        isotrope.train(output=output, **case)
    return seen


def unjudged() -> Callable[[isotrope.Encoder], Judgement]:
    count = iter(range(1000))
    return lambda encoder: Judgement({"score": float(next(count))}, "score")


def same_everywhere(weights: dict[str, torch.Tensor]) -> None:
    mine = torch.cat([tensor.double().flatten() for tensor in weights.values()])
    theirs = [torch.empty_like(mine) for _ in range(2)]
    distributed.all_gather(theirs, mine)
    assert torch.equal(theirs[0], theirs[1])


def go_back(folder: str, sentences: str, output: Path) -> None:
    """The first process judges the shares; every process keeps the same one, and reads it in the log."""
    settings: dict[str, Any] = {"batch_size": 8, "max_steps": 2, "max_length": 32, "keep_start": False}
    run = isotrope.train("simcse", sentences, folder, output, kept_share="0.4,0.7", **settings)
    same_everywhere(weights_of(run.encoder))
    (line,) = (line for line in run.history if "kept_share" in line)
    assert line["kept_share"] == max((0.7, 0.4), key=lambda share: line["shares"][str(share)]["other_view"])


def a_batch_that_cannot_be_shared_is_refused(case: dict[str, Any], output: Path) -> None:
    with pytest.raises(InputError, match="cannot be shared by 2 processes"):
        isotrope.train(output=output, **{**case, "batch_size": 15})
    assert not output.exists()


def pretrain(text: str, output: Path) -> None:
    """Both sorts of rows; out of time after a step, then resumed."""
    settings: dict[str, Any] = {
        "vocabulary": 300, "layers": 2, "width": 32, "heads": 2, "length": 32, "batch_size": 16, "steps": 12,
        "warmup_steps": 2, "save_steps": 6, "logging_steps": 3, "learning_rate": 3e-3,
    }  # fmt: skip
    for tasks in ("mlm", "mlm,nsp"):
        common = {**settings, "tasks": tasks}
        assert not isotrope.pretrain([text], output / tasks, minutes=1e-9, **common).finished
        distributed.barrier()
        run = isotrope.pretrain([text], output / tasks, resume=True, **common)
        assert run.finished
        same_everywhere(weights_of(run.encoder))


def main(file: str, output: str) -> None:
    given = json.loads(Path(file).read_text(encoding="utf-8"))
    make_accelerator(LoopSettings())
    assert distributed.get_world_size() == 2
    assert "gloo" in distributed.get_backend_config(), distributed.get_backend_config()
    folder, sentences, triples = (given[name] for name in ("model", "sentences", "triples"))
    gradients_agree("simcse", "sentences", folder, sentences, mlm=False, chunk=None)
    gradients_agree("simcse", "sentences", folder, sentences, mlm=True, chunk=None)
    gradients_agree("simcse-supervised", "triples", folder, triples, mlm=False, chunk=None)
    gradients_agree("simcse-supervised", "triples", folder, triples, mlm=False, chunk=4)
    for name, case in given["cases"].items():
        if distributed.get_rank() == 0:
            print(name, file=sys.stderr, flush=True)
        same_everywhere(descend(case, Path(output, name)))
    pretrain(given["documents"], Path(output, "pretrained"))
    go_back(folder, sentences, Path(output, "back"))
    a_batch_that_cannot_be_shared_is_refused(case, Path(output, "refused"))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
