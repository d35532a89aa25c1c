"""What tests of methods share: a method with its data, a batch of it, and the laws that every method keeps."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from torch import Tensor

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.encoders.loading import load
from isotrope.encoders.modes import set_dropout
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Added, Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.towers.keeping import Trained
from isotrope.training.state import Judge, Judgement
from isotrope.training.step import compute_gradient, represent

KEY = (42, 3, 0)


@pytest.fixture
def built(tiny: Path) -> Callable[..., Any]:
    """built("ease", data, temperature=0.1): the method on the tiny encoder, with its corpus, in training mode.

    Without data there is no corpus. ``backbone_dropout`` is for methods that have no dropout of their own to set.
    """

    def build(
        name: str,
        data: Any = None,
        columns: Sequence[str] | None = None,
        pooling: str = "mean",
        max_length: int = 64,
        language_head: bool = False,
        backbone_dropout: float | None = None,
        **settings: Any,
    ) -> Any:
        method_class = find(name)
        chosen = method_class.Settings(**settings)
        check(chosen)
        encoder = load(tiny, pooling, "cpu", language_head or method_class.language_head)
        if backbone_dropout is not None:
            set_dropout(encoder.backbone, backbone_dropout)
        types = method_class.record_types(chosen)
        corpus = None if data is None else open_corpus(data, types, encoder.text_tokenizer, columns)
        torch.manual_seed(0)
        return method_class(chosen, encoder, max_length, corpus).train()

    return build


def batch_of(method: Method[Any] | Combined, rows: Sequence[int] = range(8), seed: int = 0) -> Batch:
    """``seed`` is that of the views, and of what the loss draws."""
    corpus = (method.method if isinstance(method, Combined) else method).corpus
    assert corpus is not None
    return Batch(method.views(Records(corpus, list(rows)), np.random.default_rng(seed)), len(rows), seed)


@pytest.fixture
def batched() -> Callable[..., Batch]:
    return batch_of


@pytest.fixture
def with_mlm() -> Callable[[Method[Any], float], Combined]:
    """A method that was built with ``language_head=True``, and masked language modelling added to it."""

    def combine(method: Method[Any], weight: float) -> Combined:
        auxiliary = MaskedLanguageModel(MLMSettings(), method.encoder, method.max_length)
        return Combined(method, [Added(auxiliary, weight)]).train()

    return combine


def combined_of(method: Method[Any] | Combined) -> Combined:
    return method if isinstance(method, Combined) else Combined(method)


@pytest.fixture
def accelerator() -> Accelerator:
    AcceleratorState._reset_state()
    return Accelerator(cpu=True)


@pytest.fixture
def chunks_agree(accelerator: Accelerator) -> Callable[..., None]:
    """Of two equal methods one takes its batch in chunks, one keeps the same chunks for one backward. Dropout is on."""

    def agree(
        cached: Method[Any] | Combined, plain: Method[Any] | Combined, rows: Sequence[int] = range(12), size: int = 5
    ) -> None:
        first, second = combined_of(cached), combined_of(plain)
        batch = batch_of(second, rows)
        outcome = compute_gradient(first, batch, accelerator, KEY, chunk_size=size)
        chunks = enumerate(batch.chunks(size))
        parts = [represent(second, chunk, accelerator, (*KEY, number)) for number, chunk in chunks]
        whole = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        total = second.total(second.loss(whole, batch.generator()))
        total.backward()
        assert float(outcome.loss) == pytest.approx(float(total.detach()), abs=1e-5)
        gradients_agree(first, second)
        towers = {name: tower for name, tower in second.towers.items() if isinstance(tower, Trained)}
        for name, part in {"encoder": second.encoder, **towers}.items():
            assert max(float(p.grad.abs().max()) for p in part.parameters() if p.grad is not None) > 1e-6, name

    return agree


@pytest.fixture
def chunks_equal_whole(accelerator: Accelerator) -> Callable[..., None]:
    """Of two equal methods one takes its batch in chunks of three, one as a whole. Dropout must be off."""

    def agree(cut: Method[Any], whole: Method[Any], rows: Sequence[int] = range(8)) -> None:
        first, second = Combined(cut), Combined(whole)
        found = [
            compute_gradient(one, batch_of(one, rows), accelerator, KEY, size).representations
            for one, size in ((first, 3), (second, None))
        ]
        assert all(torch.allclose(found[0][name], found[1][name], atol=1e-5) for name in found[0])
        gradients_agree(first, second)
        assert max(float(p.grad.abs().max()) for p in second.parameters() if p.grad is not None) > 1e-2

    return agree


def gradients_agree(first: Combined, second: Combined) -> None:
    found, expected = (
        {name: p.grad for name, p in one.named_parameters() if p.grad is not None} for one in (first, second)
    )
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, atol=1e-5), name


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


@pytest.fixture(scope="session")
def rising_judge() -> Callable[..., Judge]:
    """Scores that always improve: what a tiny model learns in a few steps is nothing to the laws of the frame."""
    count = itertools.count()  # a resumed run goes on, so it must not count from the start

    def judge(encoder: isotrope.Encoder) -> Judgement:
        return Judgement({"score": float(next(count))}, "score")

    return lambda *_: judge


@pytest.fixture
def rising_scores(rising_judge: Callable[..., Judge], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is judged so."""
    monkeypatch.setattr("isotrope.evaluation.checkpoint_judge.make_judge", rising_judge)


@pytest.fixture
def updated_methods(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The method of each update that is made from now on, as the loop has it."""
    plain, seen = Combined.after_update, []

    def watch(self: Combined, representations: dict[str, Tensor]) -> None:
        plain(self, representations)
        seen.append(self.method)

    monkeypatch.setattr(Combined, "after_update", watch)
    return seen


@pytest.fixture
def interrupted() -> Callable[[int], AbstractContextManager[None]]:
    """with interrupted(3): a run that is started inside gets Ctrl-C in its third step."""

    @contextmanager
    def interrupting(step: int) -> Iterator[None]:
        plain, taken = Combined.after_update, iter(range(1, 1000))

        def stop(self: Combined, representations: dict[str, Tensor]) -> None:
            plain(self, representations)
            if next(taken) == step:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Combined, "after_update", stop)
            yield

    return interrupting


@pytest.fixture
def resume_agrees(
    tiny: Path, tmp_path: Path, rising_scores: None, interrupted: Any
) -> Callable[..., dict[str, Tensor]]:
    """Six steps against three, Ctrl-C, and three more: the same weights, those of the towers too; they are returned."""

    def agree(name: str, data: Any, **settings: Any) -> dict[str, Tensor]:
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
        with interrupted(3), pytest.raises(KeyboardInterrupt, match="step 3"):
            isotrope.train(name, data, output=tmp_path / "cut", **common)
        isotrope.train(name, data, output=tmp_path / "cut", resume=True, **common)
        first, second = (
            load_file(tmp_path / run / "checkpoints" / "step-6" / "weights.safetensors") for run in ("whole", "cut")
        )
        assert first.keys() == second.keys()
        assert [key for key, value in first.items() if not torch.equal(value, second[key])] == []
        return first

    return agree
