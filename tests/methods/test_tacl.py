"""TaCL: what is compared, what is frozen, what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch
from isotrope.methods.tacl import TaCL
from isotrope.objectives import token_contrast
from isotrope.training.loop import make_accelerator
from isotrope.training.settings import LoopSettings
from isotrope.training.step import compute_gradient


def build(tiny: Path, source: Path, **settings: Any) -> TaCL:
    chosen = TaCL.Settings(**settings)
    TaCL.check(chosen)
    encoder = isotrope.load(tiny, device="cpu", language_head=True)
    tokenizer = encoder.text_tokenizer
    corpus = open_corpus(source, ("sentences",), tokenizer)
    return TaCL(chosen, encoder, 64, corpus).train()


def batch_of(method: TaCL, rows: range | list[int] = range(8)) -> Batch:
    assert method.corpus is not None
    return Batch(method.views(Records(method.corpus, list(rows)), np.random.default_rng(0)), len(rows), 7)


def states(module: Any, tokens: Any) -> torch.Tensor:
    return module(input_ids=tokens.ids, attention_mask=tokens.mask).last_hidden_state


def test_hidden_tokens_are_compared_with_the_clean_sentence(tiny: Path, sentences: Path) -> None:
    """The student reads the masked sentence, the teacher the clean one; the loss is the objective's, and MLM counts
    once.
    """
    method = build(tiny, sentences, temperature=0.1, contrast_weight=3.0).eval()
    batch = batch_of(method)
    clean, view = batch["clean"], batch["masked"]
    assert torch.equal(torch.where(view.labels >= 0, view.labels, view.tokens.ids), clean.ids)
    assert not torch.equal(view.tokens.ids, clean.ids)
    student, teacher = states(method.encoder.backbone, view.tokens), states(method.encoder.backbone, clean)
    terms = method.loss(method.represent(batch), batch)
    expected = token_contrast(student, teacher, clean.mask > 0, view.labels >= 0, 0.1)
    assert terms["token_contrast"].item() == pytest.approx(expected.item(), rel=1e-5)
    theirs = method.encoder.language_model(
        input_ids=view.tokens.ids, attention_mask=view.tokens.mask, labels=view.labels
    ).loss  # type: ignore[misc]
    assert terms["mlm"].item() == pytest.approx(theirs.item(), rel=1e-5)
    assert method.total(terms).item() == pytest.approx(3 * expected.item() + theirs.item(), rel=1e-5)


def test_the_teacher_is_frozen_sees_no_dropout_and_gives_no_gradient(tiny: Path, sentences: Path) -> None:
    method = build(tiny, sentences)
    batch = batch_of(method)
    assert torch.equal(states(method.role["teacher"], batch["clean"]), states(method.role["teacher"], batch["clean"]))
    assert not torch.equal(
        states(method.encoder.backbone, batch["clean"]), states(method.encoder.backbone, batch["clean"])
    )
    method.total(method.loss(method.represent(batch), batch)).backward()
    assert all(p.grad is None for p in method.role["teacher"].parameters())
    assert method.encoder.backbone.get_input_embeddings().weight.grad.abs().sum() > 0


def test_the_contrast_stays_inside_a_sentence(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    """Neither other sentences, nor the padding they bring, nor their order change the losses of a sentence's tokens."""
    mixed = tmp_path / "mixed.txt"
    mixed.write_text(
        "the chef bakes the bread\n" + sentences.read_text().splitlines()[0] + " and once more with salt and soup\n"
    )
    method = build(tiny, mixed, temperature=0.5).eval()
    view = batch_of(method, [0, 1])
    alone = [method.represent(view.chunks(1)[row])["contrast_losses"] for row in range(2)]
    assert torch.allclose(torch.cat(alone), method.represent(view)["contrast_losses"], atol=1e-5)


def test_what_is_logged(tiny: Path, sentences: Path) -> None:
    method = build(tiny, sentences)
    losses = {"token_losses": torch.tensor([1.0, 3.0]), "contrast_losses": torch.tensor([0.5, 0.7, 0.69, 4.0])}
    measures = method.measures(losses)
    assert measures["perplexity"].item() == pytest.approx(math.exp(2))
    assert measures["found"].item() == 0.5  # log 2 = 0.693
    assert method.candidates(losses) == 0


def test_chunks_give_the_gradient_of_the_whole_batch(tiny: Path, sentences: Path) -> None:
    found = []
    for chunk in (None, 3):
        method = build(tiny, sentences, temperature=0.1).eval()
        compute_gradient(method, batch_of(method), make_accelerator(LoopSettings()), (1, 2, 0), chunk)
        found.append({key: p.grad for key, p in method.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    assert max(float(gradient.abs().max()) for gradient in found[0].values()) > 1e-2
    for key, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][key], atol=1e-5), key


def test_resume_equals_an_uninterrupted_run(sentences: Path, resume_agrees: Callable[..., None]) -> None:
    resume_agrees("tacl", sentences)


def test_training_lowers_both_terms_and_the_head_is_kept(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 40, "batch_size": 32, "learning_rate": 5e-3, "eval_steps": 40, "held_out": 40}
    run = isotrope.train("tacl", sentences, model=tiny, output=tmp_path / "run", temperature=0.5, **settings)
    lines = [line for line in run.history if "mlm" in line]
    assert lines[-1]["mlm"] < 0.8 * lines[0]["mlm"]
    assert lines[-1]["token_contrast"] < lines[0]["token_contrast"] - 0.1
    assert lines[-1]["perplexity"] < lines[0]["perplexity"]
    again = isotrope.load(run.folder / "model", language_head=True)
    assert run.encoder.language_model is not None
    assert again.language_model is not None
    for (name, kept), saved in zip(
        run.encoder.language_model.named_parameters(), again.language_model.parameters(), strict=True
    ):
        assert torch.equal(kept, saved), name
    assert np.allclose(again.encode("the chef bakes"), run.encoder.encode("the chef bakes"), atol=1e-6)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"contrast_weight": -1.0}, "contrast_weight"),
        ({"mask_rate": 1.0}, "mask_rate"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        TaCL.check(TaCL.Settings(**bad))


def test_a_model_without_a_head_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        TaCL(TaCL.Settings(), isotrope.load(tiny), 64)
