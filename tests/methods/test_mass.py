"""MASS: the fragment that the encoder does not see is what the decoder writes, at its own places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check

Build = Callable[..., Any]
MASS = find("mass")


def test_the_card() -> None:
    assert (MASS.card.needs, MASS.card.year, MASS.keeps) == ("sentences", 2019, "last")
    assert MASS.Settings().fragment_share == 0.5  # type: ignore[attr-defined]
    assert MASS.Settings().edge_share == 0.0  # type: ignore[attr-defined]


def test_what_is_visible_and_what_is_written_make_the_text(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("mass", sentences)
    batch, corpus, tokenizer = batched(method, range(40)), method.corpus, method.encoder.text_tokenizer
    source, target, places = batch["source"], batch["target"], batch["places"].values
    hidden = 0
    for row in range(40):
        clean = tokenizer.prefix + corpus.tokens(row).tolist() + tokenizer.suffix
        seen = source.ids[row, : source.lengths[row]].tolist()
        size = int(target.tokens.lengths[row])
        start = int(places[row]) + 1  # the place of the first token that is asked
        assert len(seen) == len(clean)
        assert size == pytest.approx((len(clean) - 2) / 2, abs=0.5)
        assert target.labels[row, :size].tolist() == clean[start : start + size]
        assert target.tokens.ids[row, :size].tolist() == clean[start - 1 : start + size - 1]
        assert seen[:start] + target.labels[row, :size].tolist() + seen[start + size :] == clean
        hidden += sum(token == tokenizer.mask for token in seen[start : start + size])
    assert hidden / int(target.tokens.lengths.sum()) == pytest.approx(0.8, abs=0.06)
    assert len(method.represent(batch)["target_losses"]) == int(target.tokens.lengths.sum())


def test_a_fragment_at_the_start_follows_the_beginning(built: Build, sentences: Path) -> None:
    method = built("mass", sentences, edge_share=0.5)
    text, tokenizer = method.text(method.corpus, 0), method.encoder.text_tokenizer
    found = [method.example(text, np.random.default_rng(seed))[1] for seed in range(20)]
    assert {target.place for target in found} == {0, len(text[0].first) - len(found[0].wanted)}
    first = next(target for target in found if target.place == 0)
    assert first.shown[:1] == tokenizer.prefix
    assert first.wanted == text[0].first[: len(first.wanted)].tolist()


def test_all_hidden_is_a_language_model_and_little_is_a_mask(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    whole = batched(built("mass", sentences, fragment_share=1.0))
    assert (whole["target"].tokens.lengths == whole["texts"].lengths - 2).all()
    single = batched(built("mass", sentences, fragment_share=1e-6))
    assert single["target"].tokens.lengths.tolist() == [1] * 8


def test_places_count(built: Build, batched: Callable[..., Batch], sentences: Path) -> None:
    method = built("mass", sentences).eval()
    batch = batched(method)
    moved = Batch({**batch.views, "places": type(batch["places"])(torch.zeros(8, dtype=torch.long))}, 8, 0)
    assert not torch.allclose(
        method.represent(batch)["target_losses"], method.represent(moved)["target_losses"], atol=1e-4
    )


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_training_lowers_the_perplexity_of_held_out_text(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"batch_size": 32, "learning_rate": 3e-3, "max_steps": 40, "eval_steps": 40, "held_out": 40}
    run = isotrope.train("mass", sentences, tiny, tmp_path / "run", **settings)
    before, after = (line["evaluation"]["mass_perplexity"] for line in run.history if "evaluation" in line)
    assert after < 0.2 * before
    assert isotrope.load(tmp_path / "run" / "model").state_dict().keys() == isotrope.load(tiny).state_dict().keys()


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"fragment_share": 0.0}, "fragment_share"),
        ({"fragment_share": 1.5}, "fragment_share"),
        ({"edge_share": 0.6}, "edge_share"),
        ({"unit": "word"}, "unit"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(MASS.Settings(**bad))


def test_a_tokenizer_without_a_mask_is_refused(built: Build, sentences: Path) -> None:
    method = built("mass", sentences)
    method.encoder.text_tokenizer.mask = None
    with pytest.raises(InputError, match="MASK"):
        MASS(method.settings, method.encoder, 64, method.corpus)
