"""An auxiliary loss reads the trained encoder's texts alone: a second tower with another vocabulary stays untouched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.loading import load
from isotrope.methods.frame.combined import Added, Combined
from isotrope.methods.frame.method_registry import find
from isotrope.views.masking import Masked

Build = Callable[..., Any]
SECOND = {"dclr": ("complement", {"threshold": 0.5}), "distil": ("teacher", {}), "rankcse": ("teacher", {})}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """An encoder of a larger vocabulary: most of its ids are none of the tiny encoder's."""
    folder = tmp_path_factory.mktemp("second") / "stranger"
    fresh_encoder(topics, vocabulary=330, layers=1, width=48, heads=2, max_length=64, seed=7).save(folder)
    return folder


@pytest.mark.parametrize("auxiliary", ["mlm", "rtd"])
@pytest.mark.parametrize("name", SECOND)
def test_only_the_trained_encoders_ids_are_masked(
    name: str, auxiliary: str, built: Build, batched: Any, sentences: Path, stranger: Path
) -> None:
    setting, others = SECOND[name]
    method = built(name, sentences, language_head=True, **{setting: str(stranger), **others})
    own = method.encoder.text_tokenizer
    other = load(stranger, device="cpu")
    assert other.text_tokenizer.vocabulary > own.vocabulary
    added_class: Any = find(auxiliary)
    added = added_class(added_class.added_settings(), method.encoder, method.max_length)
    combined = Combined(method, [Added(added, 0.1)]).train()
    batch = batched(combined)
    texts = [method.corpus.text(row) for row in range(8)]
    second = next(view for view_name, view in batch.views.items() if view_name.startswith(setting))
    assert torch.equal(second.ids, other.tokenize(texts).ids)
    asked = {view_name: view for view_name, view in batch.views.items() if isinstance(view, Masked)}
    assert asked
    for view_name, view in asked.items():
        assert view_name.rpartition(":")[2] in method.shared_views
        clean = torch.where(view.labels >= 0, view.labels, view.tokens.ids)
        assert torch.equal(clean, method.encoder.tokenize(texts).ids), view_name
        assert int(view.tokens.ids.max()) < own.vocabulary
    terms = combined.loss(combined.represent(batch), batch.generator())
    assert set(added.terms) <= set(terms)
    assert all(bool(torch.isfinite(term)) for term in terms.values())


@pytest.mark.parametrize("name", SECOND)
def test_training_with_both_auxiliary_losses(
    name: str, tiny: Path, stranger: Path, sentences: Path, tmp_path: Path, rising_scores: None
) -> None:
    setting, others = SECOND[name]
    settings: dict[str, Any] = {
        "mlm_weight": 0.1,
        "rtd_weight": 0.05,
        "batch_size": 8,
        "max_steps": 3,
        "eval_steps": 3,
        "logging_steps": 1,
    }
    run = isotrope.train(name, sentences, tiny, tmp_path / "run", **{setting: str(stranger), **others, **settings})
    losses = [line for line in run.history if "mlm" in line and "detection" in line]
    assert losses
    assert all(np.isfinite(line["loss"]) for line in losses)
