"""Text in, vectors out: the same vectors whatever the batch, the order and the company."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.encoders import encoder as encoder_module
from isotrope.encoders.loading import load
from isotrope.encoders.parts.dense import Dense
from isotrope.encoders.vector_groups import plan
from isotrope.errors import InputError
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Frozen

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def encoder(fresh):
    return fresh()


def framed(encoder, texts: list[str]) -> Tokens:
    flat, lengths = encoder.text_tokenizer.flat(texts)
    return encoder.frame(np.split(flat, np.cumsum(lengths)[:-1]))


# --------------------------------------------------------------------------------------------------------------- shapes


def test_shapes_and_type(encoder, texts):
    assert encoder.encode("a cat").shape == (32,)
    assert encoder.encode(["a cat"]).shape == (1, 32)
    assert encoder.encode([]).shape == (0, 32)
    assert encoder.encode(texts).shape == (len(texts), 32)
    assert {encoder.encode(case).dtype for case in ("a", ["a"], [])} == {np.dtype(np.float32)}


def test_the_dimension_is_that_of_the_last_dense(fresh, texts):
    encoder = fresh()
    encoder.parts.extend([Dense(32, 12), Dense(12, 7)])
    assert encoder.dimension == encoder.encode(texts).shape[1] == encoder.encode([]).shape[1] == 7


def test_other_parts_over_the_same_encoder(fresh, texts):
    encoder = fresh()
    encoder.prompt, encoder.max_length, encoder.facts = "find the ", 9, {"method": "simcse"}
    dense = Dense(32, 5)
    other = encoder.with_parts([dense])
    assert other.backbone is encoder.backbone
    assert other.language_model is encoder.language_model
    assert (other.prompt, other.max_length, other.facts) == ("find the ", 9, {"method": "simcse"})
    assert len(encoder.parts) == 0
    expected = dense(torch.from_numpy(encoder.encode(texts))).detach().numpy()
    np.testing.assert_allclose(other.encode(texts), expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(other.with_parts([]).encode(texts), encoder.encode(texts))


def test_any_sequence_of_texts_will_do(encoder, texts):
    expected = encoder.encode(texts)
    for kind in (tuple, iter, np.array):
        np.testing.assert_array_equal(encoder.encode(kind(texts)), expected)


def test_one_text_equals_a_list_of_one(encoder):
    np.testing.assert_array_equal(encoder.encode("the old cat"), encoder.encode(["the old cat"])[0])


def test_the_empty_text_has_a_vector(encoder):
    assert np.isfinite(encoder.encode("")).all()
    np.testing.assert_allclose(encoder.encode(["", "the cat sees a dog"])[0], encoder.encode(""), **CLOSE)


@pytest.mark.parametrize(
    "bad",
    [5, None, ["a", None], ["a", 3.5], [["a"]], b"bytes", {"a": "b"}, np.array("a"), "half \ud800", ["a", "\udfff"]],
    ids=repr,
)
def test_what_is_no_text_is_refused(encoder, bad):
    with pytest.raises(InputError, match="encode takes"):
        encoder.encode(bad)


def test_the_bad_item_is_named(encoder):
    with pytest.raises(InputError, match="item 2 is int"):
        encoder.encode(["a", "b", 7])


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_of_nothing_is_refused(encoder, size):
    with pytest.raises(InputError, match="batch_size"):
        encoder.encode(["a"], batch_size=size)


@pytest.mark.parametrize(
    "options",
    [{"batch_size": 2.5}, {"batch_size": "2"}, {"truncate_dim": 2.0}, {"truncate_dim": True}, {"truncate_dim": -1}],
    ids=str,
)
@pytest.mark.parametrize("processes", [1, 2])
def test_numbers_that_are_none_are_refused_before_any_work(encoder, options, processes):
    with pytest.raises(InputError, match=next(iter(options))):
        encoder.encode(["a", "b", "c"], processes=processes, **options)


@pytest.mark.parametrize("options", [{"prompt": 5}, {"processes": 1.5}, {"processes": 0}], ids=str)
def test_other_options_of_another_type_are_refused(encoder, options):
    with pytest.raises(InputError, match=next(iter(options))):
        encoder.encode(["a"], **options)


# --------------------------------------------------------------------------------------------------------- independence


@settings(max_examples=25, deadline=None)
@given(data=st.data(), size=st.one_of(st.none(), st.integers(1, 20)), budget=st.sampled_from([1, 16, 60, 200, 100_000]))
def test_a_vector_depends_on_its_text_alone(encoder, texts, data, size, budget):
    """Not on the batch size, the tokens of a batch, the order, or who else is there; twice the same text included."""
    alone = np.stack([encoder.encode(text) for text in texts])
    chosen = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=24))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(encoder_module.TOKEN_BUDGET, "cpu", budget)
        vectors = encoder.encode([texts[i] for i in chosen], batch_size=size)
    np.testing.assert_allclose(vectors, alone[chosen], **CLOSE)


def test_texts_have_different_vectors(encoder, texts):
    """Or the test above could not fail."""
    vectors = encoder.encode(texts)
    distances = np.abs(vectors[:, None] - vectors[None]).max(axis=2)
    assert (distances[~np.eye(len(texts), dtype=bool)] > 1e-2).all()


@given(
    lengths=st.lists(st.integers(0, 40), max_size=30),
    budget=st.integers(1, 100),
    rows=st.one_of(st.none(), st.integers(1, 5)),
)
def test_the_plan_holds_each_row_once_and_keeps_its_limits(lengths, budget, rows):
    groups = [group.tolist() for group in plan(np.array(lengths, dtype=np.int64), budget, rows)]
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[row] for row in group) <= budget
        assert rows is None or len(group) <= rows


@pytest.mark.parametrize("limit", [3, 8, 47, 48, 64])
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_texts_are_cut_where_sentence_transformers_cuts(name, limit, request, texts):
    from sentence_transformers import SentenceTransformer

    folder = request.getfixturevalue(name)
    encoder = load(folder)
    limit = encoder.max_length = min(limit, encoder.max_length)
    other = SentenceTransformer(str(folder), device="cpu")
    other.max_seq_length = limit
    np.testing.assert_allclose(encoder.encode(texts), other.encode(texts, batch_size=4), **CLOSE)


# -------------------------------------------------------------------------------------------------------------- options


def test_normalized_vectors_keep_their_direction(encoder, texts):
    plain, unit = encoder.encode(texts), encoder.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(unit * np.linalg.norm(plain, axis=1, keepdims=True), plain, **CLOSE)


@pytest.mark.parametrize("asked", [{"convert_to_tensor": True}, {"convert_to_numpy": False}], ids=str)
def test_tensors_on_demand(encoder, texts, asked):
    tensor = encoder.encode(texts, **asked)
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), encoder.encode(texts))
    torch.nn.Linear(32, 1)(tensor).sum().backward()  # an inference tensor could not be used so


def test_similarity_takes_texts_and_vectors(encoder, texts):
    vectors = encoder.encode(texts).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = unit @ unit[:3].T
    for a in (texts, tuple(texts), encoder.encode(texts), encoder.encode(texts, convert_to_tensor=True)):
        for b in (texts[:3], encoder.encode(texts[:3])):
            np.testing.assert_allclose(encoder.similarity(a, b), expected, **CLOSE)
    assert encoder.similarity("a cat", texts).shape == (1, len(texts))
    assert encoder.similarity(vectors[0], vectors).shape == (1, len(texts))
    assert encoder.similarity(texts, []).shape == (len(texts), 0)
    assert np.isfinite(encoder.similarity(np.zeros(32), texts)).all()


def test_similarity_takes_arrays_of_texts_and_refuses_what_is_neither(encoder, texts):
    expected = encoder.similarity(texts, texts[:2])
    for other in (np.array(texts[:2]), (text for text in texts[:2]), np.array(texts[:2], dtype=object)):
        np.testing.assert_array_equal(encoder.similarity(texts, other), expected)
    vectors = torch.from_numpy(encoder.encode(texts[:2])).requires_grad_()
    np.testing.assert_allclose(encoder.similarity(texts, vectors), expected, **CLOSE)
    for bad in (np.ones((2, 3)), np.ones((2, 3, 32)), ["a", 1], 5, [[1.0], [1.0, 2.0]]):
        with pytest.raises(InputError, match="similarity takes"):
            encoder.similarity(texts, bad)


def test_encoding_in_the_middle_of_training(fresh, texts):
    encoder = fresh()
    expected = encoder.encode(texts)
    encoder.train()
    encoder.backbone.encoder.layer[1].eval()  # somebody's choice, to be respected
    encoder.frozen = Frozen(torch.nn.Dropout(0.5))
    modes = {name: part.training for name, part in encoder.named_modules()}
    state = torch.get_rng_state()
    np.testing.assert_array_equal(encoder.encode(texts), expected)
    assert {name: part.training for name, part in encoder.named_modules()} == modes
    assert set(modes.values()) == {True, False}
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()


def test_modes_are_put_back_after_a_failure_too(fresh, monkeypatch):
    encoder = fresh().train()
    monkeypatch.setattr(encoder.backbone, "forward", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        encoder.encode("a")
    assert all(part.training for part in encoder.modules())


# ---------------------------------------------------------------------------------------------------------------- views


@pytest.mark.parametrize(
    "pooling", ["cls", "mean", "max", "first_last", "embed_last", "last2", "lasttoken", "weightedmean"]
)
def test_more_padding_changes_nothing(bert, texts, pooling):
    encoder = load(bert, pooling=pooling)
    tokens = framed(encoder, texts[:6])
    wider = Tokens(
        torch.nn.functional.pad(tokens.ids, (0, 7), value=encoder.text_tokenizer.pad),
        torch.nn.functional.pad(tokens.mask, (0, 7)),
        tokens.lengths,
    )
    with torch.no_grad():
        torch.testing.assert_close(encoder.pooled(wider), encoder.pooled(tokens), **CLOSE)
        torch.testing.assert_close(encoder.embed(wider)[0], encoder.embed(tokens)[0], **CLOSE)


def test_views_without_dropout_are_equal_to_the_pooled_rows(encoder, texts):
    tokens = framed(encoder, texts)
    with torch.no_grad():
        first, second = encoder.embed(tokens, tokens)
        torch.testing.assert_close(first, second, **CLOSE)
        torch.testing.assert_close(first, encoder.pooled(tokens), **CLOSE)


def test_views_of_different_widths_and_sizes_keep_their_rows(encoder, texts, monkeypatch):
    monkeypatch.setitem(encoder_module.TOKEN_BUDGET, "cpu", 40)  # several groups
    views = [framed(encoder, texts[:5]), framed(encoder, texts[5:6]), framed(encoder, texts[6:])]
    with torch.no_grad():
        for view, vectors in zip(views, encoder.embed(*views), strict=True):
            torch.testing.assert_close(vectors, encoder.pooled(view), **CLOSE)


def test_views_with_dropout_differ(fresh, texts):
    encoder = fresh().train()
    first, second = encoder.embed(*[framed(encoder, texts)] * 2)
    assert ((first - second).abs().amax(dim=1) > 1e-2).all()


class Recorder:
    """Stands in for torch.nn.functional.dropout:

    keeps the masks of one forward and deals them out again, rows chosen.
    """

    def __init__(self) -> None:
        self.masks: list[torch.Tensor] = []
        self.rows: torch.Tensor | None = None

    def __call__(self, states, p=0.5, training=True, inplace=False):
        if not training:
            return states
        if self.rows is None:
            self.masks.append((torch.rand_like(states) >= p).float() / (1 - p))
            return states * self.masks[-1]
        return states * self.left.pop(0)[self.rows]

    def replay(self, rows) -> None:
        self.rows, self.left = torch.as_tensor(rows), list(self.masks)


def test_one_doubled_forward_is_two_forwards_under_the_same_masks(fresh, texts, monkeypatch):
    encoder = fresh().train()
    encoder.backbone.set_attn_implementation("eager")  # the only one whose attention masks can be seen
    tokens = framed(encoder, texts[:8])
    size = len(tokens)
    torch.manual_seed(3)
    weights = torch.randn(2, size, 32)  # a loss that tells the views apart
    dropout = Recorder()
    monkeypatch.setattr(torch.nn.functional, "dropout", dropout)

    doubled = torch.stack(encoder.embed(tokens, tokens))
    (doubled * weights).sum().backward()
    expected = {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}
    assert len(dropout.masks) == 1 + 3 * 3  # the embeddings; attention, its output and the output of each layer

    encoder.zero_grad()
    # Rows run longest first: where row r of a half stood in the doubled forward.
    place = np.argsort(np.argsort(-np.tile(tokens.lengths, 2), kind="stable"), kind="stable")
    order = np.argsort(-tokens.lengths, kind="stable")
    halves = []
    for half in range(2):
        dropout.replay(place[half * size + order])
        halves.append(encoder.embed(tokens)[0])
        (halves[-1] * weights[half]).sum().backward()
    torch.testing.assert_close(torch.stack(halves), doubled, **CLOSE)
    assert expected
    for name, parameter in encoder.named_parameters():
        if name in expected:
            torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(halves[0], halves[1], atol=1e-2)


@pytest.mark.parametrize("budget", [1, 64])
def test_grouping_rows_does_not_change_the_gradient(fresh, texts, monkeypatch, budget):
    def gradient() -> torch.Tensor:
        encoder = fresh()  # dropout off
        tokens = framed(encoder, texts)
        torch.manual_seed(0)
        (encoder.embed(tokens, tokens)[0] * torch.randn(len(tokens), 32)).sum().backward()
        return torch.cat([p.grad.flatten() for p in encoder.backbone.parameters() if p.grad is not None])

    whole = gradient()
    monkeypatch.setitem(encoder_module.TOKEN_BUDGET, "cpu", budget)
    torch.testing.assert_close(gradient(), whole, rtol=1e-4, atol=1e-4)
