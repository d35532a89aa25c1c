"""Rows without padding: the states are those of the model's own forward, and so are the gradients."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

import isotrope
from isotrope.encoders import compiled_layers, layer_parts, row_layers
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.gpu_encoding import half_cost
from isotrope.encoders.loading import load
from isotrope.encoders.modes import set_dropout
from isotrope.encoders.row_graphs import fill, room_for, size_for
from isotrope.encoders.row_layers import Inputs
from isotrope.encoders.speed import Speed, at_speed, forgetting_graphs
from isotrope.encoders.unpadded import laid_out, of_backbone, unpadded, with_padding
from isotrope.errors import InputError

TEXTS = ["a", "the chef bakes bread in the warm kitchen", "", "two boats cross the bay", "the end"] * 3
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def encoder(tiny: Path) -> Encoder:
    return load(tiny, device="cpu")


def inside(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return states[mask.bool()]


def test_every_layer_is_that_of_the_model(encoder: Encoder) -> None:
    tokens = encoder.tokenize(TEXTS)
    found = of_backbone(encoder.backbone)
    assert found is not None
    with torch.no_grad():
        own, ours = encoder.layers(tokens), found.all_layers(tokens)
    assert len(own) == len(ours)
    for theirs, mine in zip(own, ours, strict=True):
        torch.testing.assert_close(inside(mine, tokens.mask), inside(theirs, tokens.mask), atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_the_model(encoder: Encoder) -> None:
    tokens, other = encoder.tokenize(TEXTS), copy.deepcopy(encoder)
    found = of_backbone(other.backbone)
    assert found is not None
    weight = torch.randn(encoder.width)
    (inside(encoder.states(tokens), tokens.mask) @ weight).square().mean().backward()
    (inside(found.states(tokens), tokens.mask) @ weight).square().mean().backward()
    for (name, one), two in zip(encoder.backbone.named_parameters(), other.backbone.parameters(), strict=True):
        if one.grad is not None:
            assert two.grad is not None, name
            torch.testing.assert_close(two.grad, one.grad, atol=1e-5, rtol=1e-3)


def test_first_states_and_their_gradients_are_those_of_padded_rows(encoder: Encoder) -> None:
    tokens, weight = encoder.tokenize(TEXTS), torch.randn(encoder.width)
    found = of_backbone(encoder.backbone)
    assert found is not None
    table = encoder.backbone.embeddings.word_embeddings.weight
    results = []
    for states in (found.first_states(tokens), found.states(tokens)[:, 0]):
        (gradient,) = torch.autograd.grad((states @ weight).square().mean(), table)
        results.append((states.detach(), gradient))
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("pooling", ["cls", "mean", "cls+mean", "layer:1:cls"])
def test_pooled_vectors_are_those_of_padded_rows(tiny: Path, pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load(tiny, pooling, device="cpu")
    tokens = encoder.tokenize(TEXTS)
    with torch.no_grad():
        expected = encoder.pooled(tokens)
        monkeypatch.setattr(Encoder, "_bare", lambda self, tokens: of_backbone(self.backbone))
        torch.testing.assert_close(encoder.pooled(tokens), expected, atol=1e-5, rtol=1e-5)


def test_a_model_with_a_hook_takes_its_own_forward(encoder: Encoder) -> None:
    assert of_backbone(encoder.backbone) is not None
    handle = encoder.backbone.encoder.layer[0].register_forward_hook(lambda *_: None)
    assert of_backbone(encoder.backbone) is None
    handle.remove()
    assert of_backbone(encoder.backbone) is not None


def test_a_model_with_a_new_module_takes_its_own_forward(encoder: Encoder) -> None:
    class Adapted(torch.nn.Linear):
        """As adapters are: another class in the place of a linear layer."""

    assert of_backbone(encoder.backbone) is not None
    attention = encoder.backbone.encoder.layer[0].attention.self
    attention.query = Adapted(attention.query.in_features, attention.query.out_features)
    assert of_backbone(encoder.backbone) is None


def test_a_copy_is_computed_with_its_own_weights(encoder: Encoder) -> None:
    tokens, other = encoder.tokenize(TEXTS), copy.deepcopy(encoder)
    with torch.no_grad():
        other.backbone.embeddings.word_embeddings.weight.mul_(2)
        one, two = (of_backbone(each.backbone) for each in (encoder, other))
        assert one is not None
        assert two is not None
        assert not torch.allclose(one.states(tokens), two.states(tokens))


def test_on_a_cpu_the_model_takes_its_own_forward(encoder: Encoder) -> None:
    assert unpadded(encoder.backbone, torch.device("cpu")) is None


@pytest.mark.parametrize("count", [1, 255, 256, 257, 5000, 39_000, 100_000])
def test_few_numbers_of_tokens_and_little_filling(count: int) -> None:
    size = size_for(count)
    assert size >= count
    assert size - count < max(512, count / 8)
    assert size_for(size) == size


@pytest.mark.parametrize(("tokens", "more"), [(1024, 0), (1000, 0), (1000, 24), (1024, 3), (600, 500), (513, 0)])
def test_filled_rows_are_never_taken_for_full_ones(tokens: int, more: int) -> None:
    """Eight rows of at most 128 tokens: the kernels count on it that 1,024 tokens leave none behind the last row."""
    numbers = torch.zeros(tokens, dtype=torch.int64)
    size = room_for(Inputs(numbers, numbers, torch.zeros(9, dtype=torch.int32), None, 128), more)
    assert size >= tokens + more
    assert size != 1024 or (tokens, more) == (1024, 0)


def test_filling_changes_no_state_and_no_gradient(encoder: Encoder) -> None:
    found = of_backbone(encoder.backbone)
    assert found is not None
    _, inputs = laid_out(encoder.tokenize(TEXTS))
    count, weight = len(inputs.ids), torch.randn(encoder.width)
    results = []
    for given in (inputs, fill(inputs, 512)):
        encoder.zero_grad()
        *_, last = found.layers.walk(_with_a_row_behind(given), torch.float32)
        (last[:count] @ weight).square().mean().backward()
        gradient = encoder.backbone.encoder.layer[0].output.dense.weight.grad
        assert gradient is not None
        results.append((last[:count].detach(), gradient.clone()))
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-4)


def test_half_precision_is_refused_on_a_cpu_and_leaves_nothing(encoder: Encoder, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one sentence\nand another\n", encoding="utf-8")
    with pytest.raises(InputError, match="half is for a GPU"):
        isotrope.encode(encoder, text, tmp_path / "out.npy", half=True)
    assert not (tmp_path / "out.npy").exists()


@gpu
def test_half_precision_says_what_it_changes(encoder: Encoder) -> None:
    cost = half_cost(encoder.to("cuda"), TEXTS)
    assert 0.999 < cost.least <= cost.mean
    assert cost.texts == sum(bool(text) for text in TEXTS)


def _with_a_row_behind(inputs):  # type: ignore[no-untyped-def]
    """The attention of a CPU gives no states to tokens without a row: here they are one of their own."""
    end = torch.tensor([len(inputs.ids)], dtype=torch.int32)
    return inputs._replace(borders=torch.cat([inputs.borders, end]))


@gpu
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16, None])
@pytest.mark.parametrize("longest", [64, 128, 512])
def test_on_a_gpu_states_are_those_of_the_model(encoder: Encoder, half: torch.dtype | None, longest: int) -> None:
    encoder = encoder.to("cuda")
    texts = [" ".join(["bread"] * n) for n in np.random.default_rng(0).integers(1, longest, 40)]
    tokens = encoder.tokenize(texts, longest).to(torch.device("cuda"))
    with torch.no_grad(), with_padding():
        own = inside(encoder.states(tokens), tokens.mask)
    with torch.no_grad(), torch.autocast("cuda", half or torch.float32, enabled=half is not None):
        ours = inside(encoder.states(tokens), tokens.mask)
    assert float(torch.nn.functional.cosine_similarity(own, ours).min()) > (0.999 if half else 0.99999)


@gpu
def test_graphs_give_the_gradients_of_the_plain_forward(encoder: Encoder) -> None:
    encoder = encoder.to("cuda").train()
    set_dropout(encoder.backbone, 0.0)
    tokens, weight = encoder.tokenize(TEXTS).to(torch.device("cuda")), torch.randn(encoder.width, device="cuda")
    found = []
    for speed in (Speed(), Speed(compiled=True), Speed(graphs=True), Speed(compiled=True, graphs=True)):
        for _ in range(2):  # a graph is recorded, then replayed
            encoder.zero_grad(set_to_none=True)
            with at_speed(speed), torch.autocast("cuda", torch.bfloat16):
                (vectors,) = encoder.embed(tokens)
            (vectors @ weight).sum().backward()
        found.append(torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None]))
    for other in found[1:]:
        assert float(torch.nn.functional.cosine_similarity(found[0], other, dim=0)) > 0.999
        assert float(other.norm() / found[0].norm()) == pytest.approx(1, abs=0.02)


@gpu
def test_two_forwards_in_one_step_do_not_share_a_graph(encoder: Encoder) -> None:
    encoder = encoder.to("cuda").train()
    set_dropout(encoder.backbone, 0.0)
    one, two = (encoder.tokenize(texts).to(torch.device("cuda")) for texts in (TEXTS, TEXTS[::-1]))
    gradients, weight = [], torch.randn(encoder.width, device="cuda")
    for speed in (Speed(), Speed(graphs=True)):
        for _ in range(2):
            encoder.zero_grad(set_to_none=True)
            with at_speed(speed), torch.autocast("cuda", torch.bfloat16):
                first, second = encoder.embed(one)[0], encoder.embed(two)[0]
            (first @ weight + 3 * (second @ weight).square()).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None]))
    assert float(torch.nn.functional.cosine_similarity(*gradients, dim=0)) > 0.999


@gpu
def test_the_same_seed_drops_the_same_and_another_one_does_not(encoder: Encoder) -> None:
    encoder = encoder.to("cuda").train()
    set_dropout(encoder.backbone, 0.3)
    tokens = encoder.tokenize(TEXTS).to(torch.device("cuda"))

    def vectors(seed: int, speed: Speed) -> torch.Tensor:
        torch.manual_seed(seed)
        with at_speed(speed), torch.autocast("cuda", torch.bfloat16):
            (found,) = encoder.embed(tokens)
        found.sum().backward()
        return found.detach().clone()

    for speed in (Speed(), Speed(compiled=True), Speed(compiled=True, graphs=True)):
        vectors(0, speed)
        assert torch.equal(vectors(1, speed), vectors(1, speed))
        assert not torch.equal(vectors(1, speed), vectors(2, speed))


def test_a_run_that_ends_in_an_error_forgets_its_graphs(encoder: Encoder) -> None:
    found = of_backbone(encoder.backbone)
    assert found is not None
    found.graphs.found["a key"] = None
    with pytest.raises(ZeroDivisionError), forgetting_graphs():
        raise ZeroDivisionError
    assert found.graphs.found == {}


def test_states_at_places_are_those_of_all_states(encoder: Encoder) -> None:
    """Loss and every gradient too, though the last layer computes those places alone."""
    found = of_backbone(encoder.backbone)
    assert found is not None
    tokens = encoder.tokenize(TEXTS)
    places = tokens.mask.flatten().nonzero().squeeze(1)[::3]
    weight, results = torch.randn(encoder.width), []
    for states in (found.states(tokens).flatten(0, 1)[places], found.states_at(tokens, places)):
        encoder.zero_grad()
        loss = (states @ weight).square().mean()
        loss.backward()
        gradients = [each.grad.clone() for each in encoder.backbone.parameters() if each.grad is not None]
        results.append([states.detach(), loss.detach(), *gradients])
    assert len(results[0]) > 20
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(encoder.states_at(tokens, places), results[0][0], atol=1e-5, rtol=1e-4)


def test_layers_are_compiled_once_for_any_number_of_tokens(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are not full have another number of tokens in every batch."""
    found, counter = of_backbone(encoder.train().backbone), CompileCounter()
    assert found is not None
    named = (layer_parts.embed_forward, layer_parts.settle)  # attention on a CPU cannot be compiled
    parts = [torch.compile(part, dynamic=False, backend=counter) for part in named]
    made = compiled_layers.Parts(embed=parts[0], settle=parts[1])
    monkeypatch.setattr(row_layers, "compiled_parts", lambda: made)
    torch._dynamo.reset()
    for count in (15, 9, 12):
        _, inputs = laid_out(encoder.tokenize(TEXTS[:count]))
        for rate in (0.1, 0.0, 0.1):
            set_dropout(encoder.backbone, rate)
            found.layers.at(inputs, torch.arange(0, len(inputs.ids), 2), torch.float32, compiled=True)
    assert counter.frame_count == 2 * 2  # parts × rates


def test_the_same_seed_hashes_the_same_masks(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_backbone(encoder.train().backbone)
    assert found is not None
    set_dropout(encoder.backbone, 0.3)
    monkeypatch.setattr(row_layers, "compiled_parts", compiled_layers.Parts)
    _, inputs = laid_out(encoder.tokenize(TEXTS))
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(found.layers.at(inputs, torch.arange(5), torch.float32, compiled=True))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


@gpu
def test_compiled_parts_give_the_gradients_of_plain_ones(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With dropout: both hash the same masks from the same seed, one of them in kernels."""
    encoder = encoder.to("cuda").train()
    set_dropout(encoder.backbone, 0.1)
    found = of_backbone(encoder.backbone)
    assert found is not None
    compiled, takes, weight = (
        compiled_layers.compiled_parts,
        layer_parts.takes_kernel,
        torch.randn(encoder.width).cuda(),
    )
    for count in (15, 9):  # another number of tokens
        tokens = encoder.tokenize(TEXTS[:count]).to(torch.device("cuda"))
        places, gradients = tokens.mask.flatten().nonzero().squeeze(1)[::2], []
        for plain in (True, False):
            monkeypatch.setattr(row_layers, "compiled_parts", compiled_layers.Parts if plain else compiled)
            monkeypatch.setattr(layer_parts, "takes_kernel", (lambda states: False) if plain else takes)
            encoder.zero_grad(set_to_none=True)
            torch.manual_seed(5)
            with at_speed(Speed(compiled=True)), torch.autocast("cuda", torch.bfloat16):
                states = found.states_at(tokens, places)
            (states @ weight).sum().backward()
            gradients.append(torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None]))
        assert float(torch.nn.functional.cosine_similarity(*gradients, dim=0)) > 0.99
        assert float(gradients[1].norm() / gradients[0].norm()) == pytest.approx(1, abs=0.02)


def test_a_long_process_compiles_as_many_variants_as_it_meets() -> None:
    from torch._dynamo import config

    compiled_layers.compiled_layer()
    assert config.recompile_limit >= compiled_layers.VARIANTS
    assert config.accumulated_recompile_limit >= compiled_layers.VARIANTS
