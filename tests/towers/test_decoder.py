"""The decoder: it sees the past and the memory, nothing else, and shares what it says it shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.tokens.padded import Tokens
from isotrope.towers.decoder import Decoder, Vocabulary
from isotrope.views.masking import Masked


@pytest.fixture
def encoder(tiny: Path) -> Encoder:
    return isotrope.load(tiny, device="cpu", language_head=True)


def target(ids: torch.Tensor) -> Masked:
    return Masked.of(Tokens(ids, torch.ones_like(ids), np.full(len(ids), ids.shape[1])), ids)


def made(encoder: Encoder, layers: int | None = 2, tied: bool = False) -> tuple[Vocabulary, Decoder]:
    torch.manual_seed(0)
    return Vocabulary(encoder).eval(), Decoder(encoder, layers, encoder.dimension, tied).eval()


def test_it_sees_the_past_alone(encoder: Encoder) -> None:
    words, decoder = made(encoder)
    ids, memory = torch.arange(10, 20).repeat(2, 1), torch.randn(1, 3, 32).repeat(2, 1, 1)
    for place in range(10):
        other = ids.clone()
        other[1, place] = 55
        states = decoder(words, target(other), memory).view(2, 10, -1)
        assert torch.allclose(states[0, :place], states[1, :place], atol=1e-6)
        assert not torch.allclose(states[0, place], states[1, place], atol=1e-4)


def test_it_sees_all_of_its_memory_and_no_padding_of_it(encoder: Encoder) -> None:
    words, decoder = made(encoder)
    ids, memory, mask = (
        torch.arange(10, 15).repeat(2, 1),
        torch.randn(1, 4, 32).repeat(2, 1, 1),
        torch.ones(2, 4, dtype=torch.long),
    )
    mask[:, 3] = 0
    for place in range(4):
        other = memory.clone()
        other[1, place] += torch.randn(32)
        states = decoder(words, target(ids), other, mask).view(2, 5, -1)
        assert torch.allclose(states[0], states[1], atol=1e-6) is (place == 3)
    shorter = decoder(words, target(ids), memory[:, :3])
    assert torch.allclose(shorter, decoder(words, target(ids), memory, mask), atol=1e-6)


def test_padding_behind_a_target_changes_nothing(encoder: Encoder) -> None:
    words, decoder = made(encoder)
    ids, memory = torch.arange(10, 15).repeat(1, 1), torch.randn(1, 1, 32)
    longer = torch.nn.functional.pad(ids, (0, 4))
    labels = torch.where(longer > 0, longer, -100)
    padded = Masked.of(Tokens(longer, (longer > 0).long(), np.array([5])), labels)
    assert torch.allclose(decoder(words, padded, memory), decoder(words, target(ids), memory), atol=1e-6)


def test_places_are_positions(encoder: Encoder) -> None:
    words, decoder = made(encoder)
    ids, memory = torch.arange(10, 15).repeat(2, 1), torch.randn(1, 1, 32).repeat(2, 1, 1)
    plain = decoder(words, target(ids), memory)
    moved = decoder(words, target(ids), memory, places=torch.tensor([0, 7])).view(2, 5, -1)
    assert torch.allclose(moved[0], plain.view(2, 5, -1)[0], atol=1e-6)
    assert not torch.allclose(moved[1], moved[0], atol=1e-4)


def test_it_begins_as_a_copy_and_tied_layers_are_the_encoders_own(encoder: Encoder) -> None:
    own = {id(parameter) for parameter in encoder.parameters()}
    layer: Any = encoder.backbone.encoder.layer[0]  # type: ignore[union-attr, index]
    _, apart = made(encoder, layers=1)
    first: Any = apart.model.encoder.layer[0]
    assert torch.equal(first.attention.self.query.weight, layer.attention.self.query.weight)
    assert first.attention.self.query is not layer.attention.self.query
    assert sum(id(p) in own for p in apart.parameters()) == 5  # the embeddings
    _, tied = made(encoder, layers=None, tied=True)
    apart_still = {name for name, p in tied.named_parameters() if id(p) not in own}
    assert len(tied.model.encoder.layer) == 2
    assert apart_still
    assert all("crossattention" in name for name in apart_still)
    assert not layer.attention.self.is_causal  # the encoder still reads both sides
    assert not encoder.causal


def test_extra_tokens_have_vectors_and_scores_and_leave_the_table_alone(encoder: Encoder) -> None:
    words, size = Vocabulary(encoder, 5), encoder.text_tokenizer.vocabulary
    ids = torch.tensor([[1, size - 1, size, size + 4]])
    vectors = words.embed(ids)[0]
    assert words.extra is not None
    assert torch.equal(vectors[:2], words.table.weight[[1, size - 1]])
    assert torch.equal(vectors[2:], words.extra.weight[[0, 4]])
    states = torch.randn(3, 32)
    assert words(states).shape == (3, size + 5)
    assert torch.equal(words(states)[:, :size], Vocabulary(encoder)(states))
    assert encoder.backbone.get_input_embeddings().num_embeddings == size


def test_another_backbone_shares_its_table(tiny: Path, encoder: Encoder) -> None:
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    config = DistilBertConfig(
        vocab_size=encoder.text_tokenizer.vocabulary,
        dim=32,
        n_layers=1,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=64,
    )
    model = DistilBertForMaskedLM(config)
    plain = Encoder(model.distilbert, encoder.tokenizer, "cls+mean", language_model=model)
    words, decoder = made(plain, layers=None)
    assert plain.dimension == 64  # the vector is wider than the states
    losses = words(decoder(words, target(torch.arange(10, 15).repeat(2, 1)), torch.randn(2, 1, 64)))
    losses.sum().backward()
    assert [name for name, p in decoder.named_parameters() if p.grad is None] == []
    with pytest.raises(InputError, match="cannot be tied"):
        made(plain, tied=True)


def test_roberta_counts_its_positions_from_behind_the_padding(encoder: Encoder) -> None:
    from transformers import RobertaConfig, RobertaForMaskedLM

    config = RobertaConfig(
        vocab_size=encoder.text_tokenizer.vocabulary,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=40,
        pad_token_id=1,
        type_vocab_size=1,
    )
    model = RobertaForMaskedLM(config)
    plain = Encoder(model.roberta, encoder.tokenizer, language_model=model)
    words, decoder = made(plain, tied=True)
    assert decoder.first == 2
    ids = torch.arange(10, 10 + plain.max_length).unsqueeze(0)
    assert decoder(words, target(ids), torch.randn(1, 1, 32)).shape == (plain.max_length, 32)


def test_a_model_without_a_language_head_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="language head"):
        Vocabulary(isotrope.load(tiny, device="cpu"))
