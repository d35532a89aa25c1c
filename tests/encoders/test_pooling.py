"""Each pooling against its definition, one sentence at a time, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.encoders.loading import load
from isotrope.encoders.pooling import MODES, POOLINGS, Pooling, parse, pool
from isotrope.errors import InputError

LAYERS = 3
CLOSE = {"rtol": 0, "atol": 1e-5}


def by_definition(name: str, layers: list[np.ndarray]) -> np.ndarray:
    """``layers``: H_0 … H_L of one sentence without padding, [tokens, d]."""
    if name.startswith("layer:"):
        number, _, mode = name.removeprefix("layer:").partition(":")
        return by_definition(mode or "mean", [layers[int(number)]])
    last, count = layers[-1], len(layers[-1])
    mixes = {"first_last": 1, "embed_last": 0, "last2": -2}
    if name in mixes:
        return sum((layers[mixes[name]][t] + last[t]) / 2 for t in range(count)) / count
    if name == "cls":
        return last[0]
    if name == "lasttoken":
        return last[count - 1]
    if name == "max":
        return np.array([max(last[t, j] for t in range(count)) for j in range(last.shape[1])])
    weights = [t + 1 for t in range(count)] if name == "weightedmean" else [1] * count
    total = count**0.5 if name == "mean_sqrt_len_tokens" else sum(weights)
    return sum(weight * last[t] for t, weight in enumerate(weights)) / total


def padded(layers: list[list[np.ndarray]], width: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Sentences → layers [rows, width, d] and mask; padding holds large numbers, so that counting it would show."""
    rows, size = len(layers), layers[0][0].shape[1]
    states = torch.full((LAYERS + 1, rows, width, size), 1e4, dtype=torch.float64)
    mask = torch.zeros(rows, width, dtype=torch.int64)
    for row, sentence in enumerate(layers):
        for number, layer in enumerate(sentence):
            states[number, row, : len(layer)] = torch.from_numpy(layer)
        mask[row, : len(sentence[0])] = 1
    return list(states), mask


OF_A_LAYER = ["layer:0", "layer:1", "layer:2", "layer:-4:max", "layer:1:cls", "layer:-2:cls", "layer:2:lasttoken"]
ALL = sorted({*POOLINGS, *MODES, *OF_A_LAYER})


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), extra=st.integers(0, 4), seed=st.integers(0, 2**16))
def test_a_pooling_is_what_its_docstring_says(name, lengths, extra, seed):
    rng = np.random.default_rng(seed)
    sentences = [[rng.normal(size=(length, 6)) for _ in range(LAYERS + 1)] for length in lengths]
    states, mask = padded(sentences, max(lengths) + extra)
    expected = np.stack([by_definition(name, sentence) for sentence in sentences])
    np.testing.assert_allclose(Pooling.named(name, LAYERS)(states, mask).numpy(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [*ALL, "cls+mean", "max+lasttoken"])
def test_poolings_of_a_real_backbone_count_special_tokens_and_no_padding(name, fresh, texts):
    encoder = fresh()
    encoder.pooling = Pooling.named(name, LAYERS)
    expected = []
    for text in texts:
        ids = encoder.tokenizer(text, truncation=True, max_length=encoder.max_length, return_tensors="pt")["input_ids"]
        assert ids[0, 0] == encoder.tokenizer.cls_token_id
        assert ids[0, -1] == encoder.tokenizer.sep_token_id
        with torch.no_grad():
            states = encoder.backbone(input_ids=ids, output_hidden_states=True).hidden_states
        layers = [state[0].double().numpy() for state in states]
        expected.append(np.concatenate([by_definition(mode, layers) for mode in name.split("+")]))
    np.testing.assert_allclose(encoder.encode(texts), np.stack(expected), **CLOSE)


def test_poolings_differ_from_each_other(fresh, texts):
    """Or the tests above could not fail."""
    encoder = fresh()
    vectors = {}
    for name in ALL:
        encoder.pooling = Pooling.named(name, LAYERS)
        vectors[name] = encoder.encode(texts[:4])
    for a in ALL:
        for b in ALL:
            assert a == b or np.abs(vectors[a] - vectors[b]).max() > 1e-2, (a, b)


@pytest.mark.parametrize("layers", [1, 2, 12])
def test_layered_poolings_name_the_right_layers(layers):
    chosen = {
        name: np.flatnonzero(Pooling.named(name, layers).layer_weights).tolist()
        for name in ("first_last", "embed_last", "last2")
    }
    assert chosen == {"first_last": sorted({1, layers}), "embed_last": [0, layers], "last2": [layers - 1, layers]}


@pytest.mark.parametrize(
    ("asked", "name", "weights"),
    [
        ("layer:2", "layer:2", (0, 0, 1, 0)),
        ("layer:2:mean", "layer:2", (0, 0, 1, 0)),
        ("layer:-2", "layer:2", (0, 0, 1, 0)),
        ("layer:-4:cls", "layer:0:cls", (1, 0, 0, 0)),
        ("layer:1:cls+mean", "layer:1:cls+mean", (0, 1, 0, 0)),
        ("layer:3", "mean", None),
        ("layer:-1:max", "max", None),
    ],
)
def test_a_layer_has_one_name_however_it_is_spelt(asked, name, weights):
    pooling = Pooling.named(asked, LAYERS)
    assert (pooling.name, pooling.layer_weights) == (name, weights)
    assert Pooling.named(pooling.name, LAYERS) == pooling
    if weights is not None:
        assert Pooling.weighted(pooling.modes, weights) == pooling


@pytest.mark.parametrize("name", ["layer:4", "layer:-5", "layer:13:cls"])
def test_a_layer_that_the_model_does_not_have_is_refused_with_those_it_has(name, bert):
    with pytest.raises(InputError, match=rf"'{name}' asks for layer .*has the layers 0 \(embeddings\) to 3"):
        load(bert, pooling=name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("layer:", "names no layer"),
        ("layer:two", "names no layer"),
        ("layer:1+layer:2", "names no layer"),
        ("layer:1:", "Unknown pooling ''"),
        ("layer:1:men", "did you mean 'mean'"),
        ("layer:1:first_last", "Unknown pooling 'first_last'"),
        ("mean+layer:1", "Unknown pooling 'layer:1'; did you mean 'layer:K'"),
        ("layer1", "did you mean 'layer:K'"),
    ],
)
def test_a_layer_that_is_misspelt_is_refused_before_a_model_is_there(name, said):
    for look in (parse, lambda name: Pooling.named(name, 2)):
        with pytest.raises(InputError, match=said):
            look(name)


def test_a_mix_of_layers_takes_the_name_it_deserves():
    assert Pooling.weighted(("mean",), [0, 1, 0, 1]).name == "first_last"
    assert Pooling.weighted(("mean",), [0, 0, 1, 1]).name == "last2"
    assert Pooling.weighted(("cls",), [0, 1, 0, 1]).name == "cls"
    assert Pooling.weighted(("cls",), [0, 1, 0, 1]).layer_weights == (0, 1, 0, 1)


def test_half_precision_is_summed_in_float32():
    states = torch.full((1, 4096, 2), 30.0, dtype=torch.float16)  # their sum is beyond float16
    pooled = Pooling.named("mean", 1)([states], torch.ones(1, 4096, dtype=torch.int64))
    assert pooled.dtype == torch.float16
    assert pooled.tolist() == [[30.0, 30.0]]


def test_an_unknown_name_is_refused_with_the_near_ones():
    with pytest.raises(InputError, match="did you mean 'first_last'"):
        Pooling.named("firstlast", 2)
    with pytest.raises(InputError, match="Unknown pooling 'median'") as caught:
        Pooling.named("cls+median", 2)
    assert str(caught.value).count(" cls,") <= 1


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "cls"])  # without a first token there is no cls
def test_a_row_without_a_token_is_zero(mode):
    states = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))
    found = pool(mode, states, torch.tensor([[0, 0, 0, 0], [1, 1, 0, 0]]))
    assert not found[0].any()
    torch.testing.assert_close(found[1:], pool(mode, states[1:, :2], torch.ones(1, 2, dtype=torch.int64)))
