"""InfoCSE: what the small network is shown, which gradient goes where, and a head that sees the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotrope.data.corpus import Records
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.infocse import InfoCSE
from isotrope.objectives import info_nce

Build = Callable[..., Any]
Law = Callable[..., Any]


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda **settings: built("infocse", sentences, pooling="cls", **settings)


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def test_without_weight_it_is_the_contrast_behind_the_head(build: Build, batched: Any) -> None:
    method, plain = build(reconstruction_weight=0.0, dropout=0.0), build(dropout=0.0)
    batch = batched(method)
    found = Combined(method).total(method.loss(method.represent(batch), batch.generator()))
    found.backward()
    vectors = plain.encoder.embed(batch["sentences"], batch["sentences"])
    expected = info_nce(*plain.tower["head"](torch.cat(vectors)).chunk(2), 0.05)
    expected.backward()
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)
    for part in (lambda one: one.encoder, lambda one: one.tower["head"]):
        mine, theirs = gradients(part(method)), gradients(part(plain))
        assert mine.keys() == theirs.keys()
        assert all(torch.allclose(mine[name], theirs[name], atol=1e-6) for name in mine)


def test_defaults_are_the_papers() -> None:
    settings: Any = InfoCSE.Settings()
    assert (settings.temperature, settings.mask_rate, settings.reconstruction_weight) == (0.05, 0.4, 1e-5)
    assert (settings.lower_layers, settings.auxiliary_layers) == (None, 2)


def test_the_lower_branch_is_the_start_without_gradient(build: Build, batched: Any) -> None:
    method = build().train()
    lower = method.tower["lower"]
    view = batched(method)["hidden"]
    states = lower(view.tokens.ids, view.tokens.mask)
    with torch.no_grad():
        expected = method.encoder.eval().layers(view.tokens)
    assert torch.allclose(states, expected[1], atol=1e-5)  # layer 1 of 2
    assert not torch.allclose(states, expected[2], atol=1e-2)
    assert len(lower.module.backbone.encoder.layer) == 1
    assert not states.requires_grad
    assert not any(part.training for part in lower.module.modules())
    method.train()
    batch = batched(method)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert not gradients(lower)
    assert not {id(p) for p in method.encoder.parameters()} & {id(p) for p in lower.parameters()}


def test_restoring_reaches_the_encoder_through_the_vector_alone(build: Build, batched: Any) -> None:
    method = build()
    batch = batched(method)
    method.loss(method.represent(batch), batch.generator())["restored"].backward()
    assert max(float(gradient.abs().max()) for gradient in gradients(method.encoder).values()) > 1e-6
    assert not gradients(method.tower["head"])
    tower = method.tower["reconstructor"]
    assert not {id(p) for p in method.encoder.parameters()} & {id(p) for p in tower.parameters()}
    method.zero_grad()
    plain = method.embed_twice
    method.embed_twice = lambda batch: tuple(found.detach() for found in plain(batch))
    method.loss(method.represent(batch), batch.generator())["restored"].backward()
    assert not any(bool(gradient.any()) for gradient in gradients(method.encoder).values())
    assert any(bool(gradient.any()) for gradient in gradients(tower).values())


def test_each_row_is_restored_with_the_vector_of_its_own_view(build: Build, batched: Any, monkeypatch: Any) -> None:
    method = build()
    tower, shown = method.tower["reconstructor"].module, []
    plain = tower.forward

    def watched(vectors: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        shown.append(vectors)
        return plain(vectors, *others)

    monkeypatch.setattr(tower, "forward", watched)
    found = method.represent(batched(method))
    assert not torch.allclose(found["first"], found["second"], atol=1e-2)  # two dropout masks
    assert torch.equal(shown[0][0::2], found["first"])
    assert torch.equal(shown[0][1::2], found["second"])


def test_the_vector_is_the_first_state_and_padding_is_not_seen(build: Build, batched: Any) -> None:
    method = build().eval()
    view = batched(method, rows=[0, 1, 150, 151])["hidden"]
    tower, mask = method.tower["reconstructor"], view.tokens.mask
    states, vectors = torch.randn(8, mask.shape[1], 32), torch.randn(8, 32)
    found = tower(vectors, states, mask, view.asked)
    changed = states.clone()
    changed[:, 0] += 1  # the masked text's own [CLS] takes no part
    assert torch.equal(tower(vectors, changed, mask, view.asked), found)
    assert not torch.allclose(tower(vectors + torch.randn(8, 32), states, mask, view.asked), found, atol=1e-4)
    wider = torch.nn.functional.pad(states, (0, 0, 0, 3), value=7.0)
    rows, columns = view.asked // mask.shape[1], view.asked % mask.shape[1]
    places = rows * wider.shape[1] + columns
    padded = tower(vectors, wider, torch.nn.functional.pad(mask, (0, 3)), places)
    assert torch.allclose(padded, found, atol=1e-5)


def test_the_loss_is_the_mean_over_hidden_tokens(build: Build, batched: Any, uniform: Any) -> None:
    method = build()
    tower = method.tower["reconstructor"].module
    tower._scores = uniform(300)
    batch = batched(method)
    terms = method.loss(method.represent(batch), batch.generator())
    assert terms["restored"].item() == pytest.approx(np.log(300), rel=1e-5)
    assert method.weights() == {"restored": 1e-5}


def test_a_batch_in_which_nothing_can_be_hidden_is_the_contrast_alone(
    built: Build, batched: Any, tmp_path: Path
) -> None:
    """Texts that are unknown tokens throughout: the mean over no token is 0, not a number that ends the run."""
    file = tmp_path / "signs.txt"
    file.write_text("".join(f"{chr(0x1F300 + number)} {chr(0x1F340 + number)}\n" for number in range(8)))
    method = built("infocse", file, pooling="cls")
    batch = batched(method)
    assert not len(batch["hidden"].asked)
    found = method.represent(batch)
    terms = method.loss(found, batch.generator())
    assert float(terms["restored"].detach()) == 0.0
    Combined(method).total(terms).backward()
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients(method).values())
    assert bool(torch.isfinite(method.measures(found)["restored_perplexity"]))


def test_forty_percent_are_hidden_and_each_view_has_masks_of_its_own(build: Build) -> None:
    method = build()
    view = method.views(Records(method.corpus, list(range(200))), np.random.default_rng(3))["hidden"]
    original = torch.where(view.labels >= 0, view.labels, view.tokens.ids)
    specials = torch.tensor(sorted(method.encoder.text_tokenizer.specials))
    ordinary = (view.tokens.mask > 0) & ~torch.isin(original, specials)
    assert float((view.labels >= 0).sum() / ordinary.sum()) == pytest.approx(0.4, abs=0.02)
    assert not torch.equal(*(view.labels >= 0).unflatten(0, (200, 2)).unbind(1))


def test_the_head_of_the_language_model_is_a_copy(build: Build) -> None:
    method = build()
    head = method.tower["reconstructor"].module.head
    theirs = method.encoder.language_model.cls
    assert all(torch.equal(value, theirs.state_dict()[name]) for name, value in head.state_dict().items())
    assert not {id(p) for p in head.parameters()} & {id(p) for p in theirs.parameters()}


def test_chunks_give_the_same_gradient(build: Build, chunks_agree: Law) -> None:
    """Batch norm and all: the head is in ``loss``."""
    chunks_agree(build(reconstruction_weight=1.0), build(reconstruction_weight=1.0))


def test_chunks_equal_the_whole_batch(build: Build, chunks_equal_whole: Law) -> None:
    settings = {"reconstruction_weight": 1.0, "dropout": 0.0}
    methods = [build(**settings) for _ in range(2)]
    for method in methods:
        for part in method.tower["reconstructor"].modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
            if isinstance(part, torch.nn.MultiheadAttention):
                part.dropout = 0.0
    chunks_equal_whole(*methods)


def test_a_layer_that_is_not_there_is_refused(build: Build) -> None:
    assert build(lower_layers=2).tower["lower"].module.count == 2
    with pytest.raises(InputError, match="lower_layers is 3, and the encoder has 2 layers"):
        build(lower_layers=3)
