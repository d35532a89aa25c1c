"""What tests of methods share: a method with its data, a batch of it, and the laws that every method keeps."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import isotrope
from isotrope import trainer
from isotrope.data.corpus import Records, open_corpus
from isotrope.methods.frame.method import Batch, Method
from isotrope.methods.frame.method_registry import find
from isotrope.training.loop import Judgement, make_accelerator
from isotrope.training.settings import LoopSettings
from isotrope.training.step import _represent, compute_gradient

KEY = (42, 3, 0)


@pytest.fixture
def built(tiny: Path) -> Callable[..., Method]:
    """built("ease", data, temperature=0.1): the method on the tiny encoder, with its corpus."""

    def build(
        name: str, data: Any, columns: Sequence[str] | None = None, pooling: str = "mean", **settings: Any
    ) -> Method:
        kind = find(name)
        chosen = kind.Settings(**settings)
        kind.check(chosen)
        encoder = isotrope.load(tiny, pooling=pooling, device="cpu", language_head=kind.needs_language_head)
        tokenizer = encoder.text_tokenizer
        corpus = open_corpus(data, kind.record_types(chosen), tokenizer, columns)
        torch.manual_seed(0)
        return kind(chosen, encoder, 64, corpus).train()

    return build


def batch_of(method: Method, rows: Sequence[int] = range(8)) -> Batch:
    assert method.corpus is not None
    return Batch(method.views(Records(method.corpus, list(rows)), np.random.default_rng(0)), len(rows), 7)


@pytest.fixture
def batched() -> Callable[..., Batch]:
    return batch_of


@pytest.fixture
def chunks_agree() -> Callable[[Method, Method], None]:
    """Two equal methods:

    one takes its batch in chunks of five, one keeps the same chunks for one backward. Dropout is on.
    """

    def agree(cached: Method, plain: Method) -> None:
        accelerator = make_accelerator(LoopSettings())
        batch = batch_of(plain, range(12))
        outcome = compute_gradient(cached, batch, accelerator, KEY, chunk_size=5)
        parts = [_represent(plain, chunk, accelerator, (*KEY, number)) for number, chunk in enumerate(batch.chunks(5))]
        total = plain.total(plain.loss({name: torch.cat([part[name] for part in parts]) for name in parts[0]}, batch))
        total.backward()
        assert float(outcome.loss) == pytest.approx(float(total.detach()), abs=1e-5)
        expected, found = (
            {n: p.grad for n, p in method.named_parameters() if p.grad is not None} for method in (plain, cached)
        )
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            assert torch.allclose(found[name], gradient, atol=1e-5), name
        for top, part in (("encoder", plain.encoder), *plain.role.items()):
            assert max(float(p.grad.abs().max()) for p in part.parameters() if p.grad is not None) > 1e-6, top

    return agree


@pytest.fixture
def uniform() -> Callable[[int], torch.nn.Module]:
    """A head that knows nothing: every token of the vocabulary scores 0."""

    class Uniform(torch.nn.Module):
        def __init__(self, vocabulary: int) -> None:
            super().__init__()
            self.vocabulary = vocabulary

        def forward(self, states: Tensor) -> Tensor:
            return torch.zeros(len(states), self.vocabulary)

    return Uniform


@pytest.fixture
def resume_agrees(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Six steps against three, Ctrl-C, and three more: the same weights, those of the roles too."""

    def agree(name: str, data: Any, **settings: Any) -> None:
        count = iter(range(1000))
        monkeypatch.setattr(
            trainer, "make_judge", lambda *_: lambda encoder: Judgement({"score": float(next(count))}, "score")
        )
        kind = find(name)
        common = {
            "model": tiny,
            "max_steps": 6,
            "batch_size": 8,
            "eval_steps": 6,
            "learning_rate": 1e-3,
            "held_out": 0,
            **settings,
        }
        isotrope.train(name, data, output=tmp_path / "whole", **common)
        before, taken = kind.after_step, iter(range(1, 1000))

        def interrupt(self: Method, representations: dict[str, Tensor]) -> None:
            before(self, representations)
            if next(taken) == 3:
                os.kill(os.getpid(), signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(kind, "after_step", interrupt)
            with pytest.raises(KeyboardInterrupt, match="step 3"):
                isotrope.train(name, data, output=tmp_path / "cut", **common)
        isotrope.train(name, data, output=tmp_path / "cut", resume=True, **common)
        first, second = (
            load_file(tmp_path / run / "checkpoints" / "step-6" / "weights.safetensors") for run in ("whole", "cut")
        )
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)

    return agree
