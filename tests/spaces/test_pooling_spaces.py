"""SIF and SBERT-WK: against loops by hand, whatever the batch and the padding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.layer_walk import LayerWalk, bend, layer_weights
from isotrope.encoders.parts.stock_parts import Normalize
from isotrope.errors import InputError
from isotrope.spaces.sif import SIF, token_frequencies
from isotrope.towers.heads import tanh_head


def states_by_hand(encoder: Encoder, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Ids [tokens] and all layers [layers, tokens, d] of one text."""
    tokens = encoder.tokenize([text])
    with torch.inference_mode():
        return tokens.ids[0].numpy(), np.stack([layer[0].double().numpy() for layer in encoder.layers(tokens)])


# -------------------------------------------------------------------------------------------------------------------
# sif


def sif_by_hand(encoder: Encoder, texts: list[str], smoothing: float) -> np.ndarray:
    """The paper's: the sum divided by the length of the text."""
    seen = [states_by_hand(encoder, text) for text in texts]
    every = np.concatenate([ids for ids, _ in seen])
    rows = []
    for ids, states in seen:
        weights = np.array([smoothing / (smoothing + (every == token).mean()) for token in ids])
        rows.append((weights[:, None] * states[-1]).sum(axis=0) / len(ids))
    vectors = np.array(rows)
    first = np.linalg.svd(vectors, full_matrices=False)[2][0]
    return vectors - np.outer(vectors @ first, first)


def test_sif_by_hand(encoder: Encoder, texts: list[str]) -> None:
    """Lengths differ by what the weighted mean divides by; directions, the removed one too, are the paper's."""
    some = [*texts[:40], "the boat", "salt"]
    found = isotrope.fit_space("sif", encoder, some, smoothing=0.01).encode(some, normalize_embeddings=True)
    paper = sif_by_hand(encoder, some, 0.01)
    assert found == pytest.approx(paper / np.linalg.norm(paper, axis=1, keepdims=True), abs=1e-5)


def test_the_paper_divides_by_the_length_and_has_the_same_cosines(encoder: Encoder, texts: list[str]) -> None:
    mapped = isotrope.fit_space("sif", encoder, texts, components=0)
    ids, states = states_by_hand(encoder, texts[3])
    weights = mapped.token_weights.weights[torch.from_numpy(ids)].numpy()
    paper = (weights[:, None] * states[-1]).mean(axis=0)
    found = mapped.encode(texts[3])
    assert found @ paper / np.linalg.norm(found) / np.linalg.norm(paper) == pytest.approx(1, abs=1e-6)
    assert not mapped.parts  # no component is taken away


def test_frequencies_count_special_tokens_and_sum_to_one(encoder: Encoder, texts: list[str]) -> None:
    found = token_frequencies(encoder, texts, block=7)
    lengths = encoder.tokenize(texts).lengths
    assert found.sum() == pytest.approx(1)
    assert found[encoder.tokenizer.cls_token_id] == pytest.approx(len(texts) / lengths.sum())
    assert found[encoder.tokenizer.pad_token_id] == 0


def test_sif_needs_a_mean(tiny: object, texts: list[str]) -> None:
    with pytest.raises(InputError, match="pooling is 'cls'"):
        isotrope.fit_space("sif", isotrope.load(tiny, pooling="cls"), texts)
    first_last = isotrope.fit_space("sif", isotrope.load(tiny, pooling="first_last"), texts)
    assert first_last.encode(texts[:3]).shape == (3, 32)


# -------------------------------------------------------------------------------------------------------------------
# sbert-wk


def weights_by_hand(path: np.ndarray, window: int) -> np.ndarray:
    """The authors' loop over the layers [layers, d], with the neighbours that their negative slice loses; an alignment
    below 0.001 counts as that.
    """
    alignment, novelty = [], []
    for k in range(len(path)):
        left, right = path[max(k - window, 0) : k], path[k + 1 : k + window + 1]
        columns = np.vstack([left, right, path[k][None]]).T
        r = np.linalg.qr(columns)[1]
        units = r[:-1, :-1] / np.linalg.norm(r[:-1, :-1], axis=0)
        a = units.mean(axis=1) @ r[:-1, -1] / np.linalg.norm(r[:-1, -1])
        alignment.append(1 / (max(a, 1e-3) * columns.shape[1] * 2))
        novelty.append(abs(r[-1, -1]) / np.linalg.norm(r[:, -1]))
    alpha = np.array(alignment) / sum(alignment) + np.array(novelty) / sum(novelty)
    return alpha / alpha.sum()


def walk_by_hand(states: np.ndarray, window: int = 2) -> np.ndarray:
    """The authors' loops [layers, tokens, d]."""
    words, bends = [], []
    for token in range(states.shape[1]):
        path = states[:, token]
        words.append(path.T @ weights_by_hand(path, window))
        unit = path / np.linalg.norm(path, axis=1, keepdims=True)
        bends.append(np.var((unit[:-1] * unit[1:]).sum(axis=1)))
    return np.array(words).T @ (np.array(bends) / sum(bends))


@pytest.mark.parametrize("window", [1, 2])
def test_sbert_wk_by_hand(encoder: Encoder, texts: list[str], window: int) -> None:
    some = [texts[0], "the boat", texts[100]]
    mapped = isotrope.fit_space("sbert-wk", encoder, some, window=window)
    for text, found in zip(some, mapped.encode(some), strict=True):
        _, states = states_by_hand(encoder, text)
        assert found == pytest.approx(walk_by_hand(states[:, :-1], window), abs=1e-4)  # [SEP] is left out, [CLS] is not


def test_layer_weights_sum_to_one_and_do_not_see_a_rotation() -> None:
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(5, 4, 8, generator=generator, dtype=torch.float64) + 2
    weights = layer_weights(states, 2)
    turn = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))[0]
    assert torch.allclose(weights.sum(dim=1), torch.ones(5).double())
    assert torch.allclose(layer_weights(states @ turn, 2), weights)
    assert torch.allclose(bend(states @ turn), bend(states))


def test_a_layer_against_its_neighbours_has_no_negative_weight() -> None:
    """Its alignment is −1: the released code would take the layer away from the others."""
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(3, 1, 8, generator=generator) + 0.1 * torch.randn(3, 5, 8, generator=generator)
    states[:, 2] *= -1
    found = layer_weights(states.double(), 2)
    assert (found >= 0).all()
    assert found.numpy() == pytest.approx(np.array([weights_by_hand(path.double().numpy(), 2) for path in states]))


def test_a_third_of_the_layers_is_left_out_by_default(tiny: Path, texts: list[str]) -> None:
    """4 of 12, as the authors do; the whole model where it has two."""
    mapped = isotrope.fit_space("sbert-wk", isotrope.load(tiny), texts)
    assert isinstance(mapped.pooling, LayerWalk)
    assert (mapped.pooling.first_layer, mapped.pooling.window, mapped.pooling.drop_last) == (0, 2, True)
    for layers, first in ((12, 4), (24, 8), (6, 2)):
        encoder = isotrope.load(tiny)
        encoder.backbone.config.num_hidden_layers = layers
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("isotrope.spaces.sbert_wk.vectors_of", lambda *given: None)
            found = isotrope.fit_space("sbert-wk", encoder, texts).pooling
        assert found.first_layer == first


def test_the_defaults_of_sif_are_the_papers() -> None:
    assert (SIF.Settings().smoothing, SIF.Settings().components) == (1e-3, 1)


def test_layers_that_are_all_alike_weigh_alike() -> None:
    states = torch.randn(1, 6, 8).expand(4, 6, 8).unsqueeze(2).expand(4, 6, 5, 8)  # rows, tokens, layers, d
    mask = torch.ones(4, 6, dtype=torch.int64)
    found = LayerWalk(first_layer=0)(list(states.unbind(dim=2)), mask)
    assert torch.isfinite(found).all()
    assert torch.allclose(found, states[:, :-1, 0].mean(dim=1), atol=1e-4)


def test_one_token_is_the_sentence() -> None:
    layers = [torch.randn(1, 4, 8) for _ in range(4)]
    found = LayerWalk(first_layer=0)(layers, torch.tensor([[1, 1, 0, 0]]))
    states = torch.stack([layer[:, 0] for layer in layers], dim=1)
    assert torch.allclose(found, (layer_weights(states, 2).unsqueeze(1) @ states).squeeze(1), atol=1e-5)


def test_padding_and_batches_change_nothing(encoder: Encoder, texts: list[str]) -> None:
    for name in ("sif", "sbert-wk"):
        mapped = isotrope.fit_space(name, encoder, texts)
        some = ["", "salt", *texts[:9], "the pianist"]
        assert mapped.encode(some, batch_size=3) == pytest.approx(
            np.array([mapped.encode(text) for text in some]), abs=1e-5
        )


def test_a_head_behind_the_pooling_is_in_the_way(encoder: Encoder, texts: list[str]) -> None:
    encoder.parts.append(Normalize())
    assert np.linalg.norm(isotrope.fit_space("sbert-wk", encoder, texts).encode("salt")) == pytest.approx(1, abs=1e-5)
    encoder.parts.append(tanh_head(32))
    for name in ("sif", "sbert-wk"):
        with pytest.raises(InputError, match="a Dense module follows the pooling"):
            isotrope.fit_space(name, encoder, texts)


def test_layers_that_are_not_there(encoder: Encoder, texts: list[str]) -> None:
    with pytest.raises(InputError, match="first_layer is at most 0"):
        isotrope.fit_space("sbert-wk", encoder, texts, first_layer=1)
