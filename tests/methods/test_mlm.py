"""Masked language modelling: at masked positions only, alone and added to another method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings

Build = Callable[..., Any]


def test_equal_to_the_full_softmax_of_transformers(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("mlm", sentences).eval()
    batch = batched(method, range(6))
    ours = method.loss(method.represent(batch), batch.generator())["mlm"]
    view = batch["masked"]
    theirs = method.encoder.language_model(
        input_ids=view.tokens.ids, attention_mask=view.tokens.mask, labels=view.labels
    ).loss
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


def test_added_to_simcse_it_adds_its_weighted_term_and_leaves_the_other_alone(
    built: Build, batched: Callable[..., Batch], with_mlm: Callable[..., Combined], sentences: Path
) -> None:
    own = built("simcse", sentences, pooling="cls", language_head=True, dropout=0.0)
    joined = with_mlm(own, 0.1)
    batch = batched(joined, range(6))
    terms = joined.loss(joined.represent(batch), batch.generator())
    alone = own.loss(own.represent(batch), batch.generator())["contrastive"]
    assert terms["contrastive"].item() == pytest.approx(alone.item(), rel=1e-5)
    assert joined.total(terms).item() == pytest.approx((terms["contrastive"] + 0.1 * terms["mlm"]).item(), rel=1e-6)
    joined.total(terms).backward()
    decoder = own.encoder.language_model.cls.predictions.transform.dense
    assert decoder.weight.grad.abs().sum() > 0
    assert set(map(id, joined.parameters())) >= set(map(id, own.parameters()))


def test_a_batch_without_a_masked_token_adds_nothing(
    built: Callable[..., Any], batched: Callable[..., Any], with_mlm: Callable[..., Combined], tmp_path: Path
) -> None:
    """Texts that are unknown tokens throughout: the mean over no token is 0, not a number that ends the run."""
    file = tmp_path / "signs.txt"
    file.write_text("".join(f"{chr(0x1F300 + number)} {chr(0x1F340 + number)}\n" for number in range(8)))
    combined = with_mlm(built("simcse", file, language_head=True), 0.1)
    batch = batched(combined)
    terms = combined.loss(combined.represent(batch), batch.generator())
    assert float(terms["mlm"].detach()) == 0.0
    combined.total(terms).backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in combined.parameters() if p.grad is not None)


def test_training_lowers_its_loss_and_keeps_the_head(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train(
        "mlm",
        sentences,
        model=tiny,
        output=tmp_path / "run",
        max_steps=40,
        batch_size=32,
        learning_rate=5e-3,
        eval_steps=40,
        held_out=40,
    )
    losses = [line["mlm"] for line in run.history if "mlm" in line]
    assert losses[-1] < 0.8 * losses[0]
    again = isotrope.load(run.folder / "model", language_head=True)
    trained = run.encoder.language_model
    assert trained is not None
    assert again.language_model is not None
    for (name, kept), saved in zip(trained.named_parameters(), again.language_model.parameters(), strict=True):
        assert torch.equal(kept, saved), name


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        ("mlm", "mlm"),
        ("rtd", "generator"),
        ("retromae", "mlm"),
        ("retromae", "restored"),
        ("infoword", "mlm"),
        ("tacl", "token_contrast"),
    ],
)
def test_a_batch_without_a_word_to_mask_costs_nothing_and_harms_nothing(
    built: Build, batched: Callable[..., Batch], tmp_path: Path, name: str, empty: str
) -> None:
    """Texts in a script that the vocabulary does not know are unknown tokens alone; a mean over nothing is NaN."""
    text = tmp_path / "strange.txt"
    text.write_text("\n".join(f"{chr(0x10380 + row)} {chr(0x10390)}" for row in range(8)), encoding="utf-8")
    method = built(name, text)
    batch = batched(method, range(4))
    representations = method.represent(batch)
    terms = method.loss(representations, batch.generator())
    assert float(terms[empty].detach()) == 0.0
    Combined(method).total(terms).backward()
    assert all(bool(p.grad.isfinite().all()) for p in method.parameters() if p.grad is not None)
    with torch.no_grad():
        assert all(bool(value.isfinite()) for value in method.measures(representations).values())


def test_a_model_without_a_head_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        MaskedLanguageModel(MLMSettings(), isotrope.load(tiny), 64)


def test_it_cannot_be_added_to_itself(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mlm has Masked language modelling among its own terms"):
        isotrope.train("mlm", sentences, tiny, tmp_path / "run", mlm_weight=0.1)
    assert not (tmp_path / "run").exists()
