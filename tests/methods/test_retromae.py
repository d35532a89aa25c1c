"""RetroMAE: what the decoder sees, and its loss against a naive computation in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from isotrope.methods.retromae import OneLayer, RetroMAE

TEXTS = [f"sentence number {number} speaks of the sea, a ship and its {number + 3} sailors" for number in range(12)]


@pytest.fixture
def retromae(built: Callable[..., Any]) -> Callable[..., RetroMAE]:
    def build(**settings: Any) -> RetroMAE:
        method: RetroMAE = built("retromae", TEXTS, backbone_dropout=0.0, **settings)
        return method

    return build


def norm(row: Tensor, layer: torch.nn.LayerNorm) -> Tensor:
    centred = row - row.mean()
    return centred / torch.sqrt((centred**2).mean() + layer.eps) * layer.weight + layer.bias


def naive_state(layer: OneLayer, vector: Tensor, embedded: Tensor, visible: Tensor, place: int) -> Tensor:
    """One place of one text, with loops over heads and candidates."""
    places = layer.positions.weight
    asking = norm(vector + places[place], layer.enter)
    seen = [
        norm(vector, layer.enter),
        *(norm(row + at, layer.enter) for row, at in zip(embedded, places, strict=False)),
    ]
    query, width = layer.query(asking), len(vector) // layer.heads
    found = []
    for head in range(layer.heads):
        own = slice(head * width, (head + 1) * width)
        candidates = [row for row, shown in zip(seen, visible[place].tolist(), strict=True) if shown]
        weights = [math.exp(float(query[own] @ layer.key(row)[own]) / math.sqrt(width)) for row in candidates]
        found.append(sum(w * layer.value(row)[own] for w, row in zip(weights, candidates, strict=True)) / sum(weights))
    state = norm(asking + layer.out(torch.cat(found)), layer.between)
    return norm(state + layer.feed(state), layer.behind)


@torch.no_grad()
def test_the_loss_is_the_papers(retromae: Callable[..., RetroMAE], batched: Callable[..., Any]) -> None:
    method = retromae().double().eval()
    batch = batched(method, range(3))
    whole, layer = batch["whole"], method.tower["decoder"].module
    assert isinstance(layer, OneLayer)
    torch.manual_seed(5)
    found = method.represent(batch)
    torch.manual_seed(5)
    visible = method.visible(whole.tokens.mask)
    _, vectors = method.encoder.states_and_vectors(batch["masked"].tokens)
    losses = []
    for row in range(3):
        embedded = method.table(whole.tokens.ids[row])
        for place in range(whole.tokens.ids.shape[1]):
            if whole.labels[row, place] >= 0:
                state = naive_state(layer, vectors[row], embedded, visible[row], place)
                scores = method.scores(state.unsqueeze(0))[0]
                losses.append(scores.exp().sum().log() - scores[whole.labels[row, place]])
    assert torch.allclose(found["restored_losses"].double(), torch.stack(losses), atol=1e-5)
    terms = method.loss(found, torch.Generator())
    assert list(terms) == ["mlm", "restored"]
    assert float(terms["restored"]) == pytest.approx(float(torch.stack(losses).mean()), abs=1e-5)


def test_a_place_sees_the_vector_never_itself_and_no_padding(retromae: Callable[..., RetroMAE]) -> None:
    method = retromae(decoder_mask=0.5)
    mask = torch.tensor([[1] * 40, [1] * 25 + [0] * 15]).repeat(50, 1)
    visible = method.visible(mask)
    assert visible.shape == (100, 40, 41)
    assert bool(visible[:, :, 0].all())
    tokens = visible[:, :, 1:]
    assert not bool(tokens.diagonal(dim1=1, dim2=2).any())
    assert not bool(tokens[1::2, :, 25:].any())
    assert float(tokens[::2].float().sum() / (50 * 40 * 39)) == pytest.approx(0.5, abs=0.01)
    assert not torch.equal(tokens[0, 0, 2:], tokens[0, 1, 2:])  # each place has a draw of its own


def test_every_ordinary_token_is_restored_and_the_encoder_sees_masks(
    retromae: Callable[..., RetroMAE], batched: Callable[..., Any]
) -> None:
    method = retromae(mask_rate=0.3)
    batch = batched(method, range(12))
    whole, masked = batch["whole"], batch["masked"]
    specials = torch.tensor(sorted(method.encoder.text_tokenizer.specials))
    ordinary = (whole.tokens.mask > 0) & ~torch.isin(whole.tokens.ids, specials)
    assert torch.equal(whole.labels >= 0, ordinary)
    assert torch.equal(whole.tokens.ids[ordinary], whole.labels[ordinary])
    assert 0.2 < float((masked.labels >= 0).sum() / ordinary.sum()) < 0.4


def test_the_gradient_reaches_the_encoder_through_the_vector_alone(
    retromae: Callable[..., RetroMAE], batched: Callable[..., Any]
) -> None:
    method = retromae()
    found = method.represent(batched(method))
    found["restored_losses"].mean().backward()
    layers = [
        p.grad for name, p in method.encoder.backbone.named_parameters() if "layer.0" in name and p.grad is not None
    ]
    assert max(float(gradient.abs().max()) for gradient in layers) > 1e-6
