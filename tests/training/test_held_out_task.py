"""A method's own task on held-out text: the same question each time, and nothing of training is touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import open_corpus
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.training.held_out_task import own_measures, with_own_task
from isotrope.training.state import Judgement


def built(name: str, tiny: Path, text: Path) -> Combined:
    encoder = isotrope.load(tiny, device="cpu", language_head=name == "mlm")
    tokenizer = encoder.text_tokenizer
    corpus = open_corpus(text, (find(name).card.needs,), tokenizer)
    return Combined(find(name)(find(name).Settings(), encoder, 64, corpus)).train()


@pytest.mark.parametrize("name", ["mlm", "nsp"])
def test_the_same_weights_give_the_same_numbers_whatever_came_before(name: str, tiny: Path, sentences: Path) -> None:
    method = built(name, tiny, sentences)
    assert method.method.corpus is not None
    rows = np.arange(80, 120)
    first = own_measures(method, method.method.corpus, rows, 16, 42)
    torch.rand(7)
    assert own_measures(method, method.method.corpus, rows, 16, 42) == first
    assert method.training
    assert all(parameter.grad is None for parameter in method.parameters())
    with torch.no_grad():
        for parameter in list(method.parameters())[-2:]:  # the last layer of the head
            parameter.mul_(-3)
    assert own_measures(method, method.method.corpus, rows, 16, 42) != first


def test_only_the_rows_kept_aside_are_asked(tiny: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = built("nsp", tiny, sentences)
    assert method.method.corpus is not None
    seen: list[int] = []
    views = type(method.method).views
    monkeypatch.setattr(
        type(method.method), "views", lambda self, records, rng: seen.extend(records.rows) or views(self, records, rng)
    )
    own_measures(method, method.method.corpus, np.arange(80, 120), 8, 42)
    assert sorted(seen) == list(range(80, 120))


def test_the_judge_is_as_before_where_a_method_has_no_task_or_nothing_is_kept_aside(
    tiny: Path, sentences: Path
) -> None:
    def judge(encoder: isotrope.Encoder) -> Judgement:
        return Judgement({"score": 1.0}, "score")

    simcse, nsp = built("simcse", tiny, sentences), built("nsp", tiny, sentences)
    assert simcse.method.corpus is not None
    assert nsp.method.corpus is not None
    assert with_own_task(judge, simcse, simcse.method.corpus, np.arange(40), 16, 42) is judge
    assert with_own_task(judge, nsp, nsp.method.corpus, np.arange(0), 16, 42) is judge
    found = with_own_task(judge, nsp, nsp.method.corpus, np.arange(40), 16, 42)(nsp.encoder)
    assert found.score == 1.0
    assert set(found.measures) == {"score", "nsp_accuracy", "nsp_guess"}
