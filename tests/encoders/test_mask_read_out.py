"""The read-out at the mask of a template: its vectors, here and elsewhere; who can have it, and who keeps it."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.encoders.modes import evaluating
from isotrope.encoders.read_out import is_raw, with_read_out
from isotrope.encoders.unpadded import of_backbone
from isotrope.errors import InputError
from isotrope.spaces.space_registry import find
from isotrope.tokens.padded import join
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import mask_tokens

OWN = 'mask:A sentence, "[X]", is a [MASK].'
TEXTS = ["the chef bakes the bread", "a", "", "the [MASK] steers the boat", "the sailor steers the boat home " * 30]
pytestmark = pytest.mark.filterwarnings("ignore::isotrope.encoders.cut_texts.CutTextWarning")


@pytest.fixture
def byte_folder(byte_tokenizer: TextTokenizer, tmp_path: Path) -> Path:
    """A tiny RoBERTa, whose positions begin behind the padding index."""
    from transformers import RobertaConfig, RobertaModel

    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = RobertaConfig(
        vocab_size=len(byte_tokenizer.tokenizer), max_position_embeddings=66, pad_token_id=1, **shape
    )
    RobertaModel(config).save_pretrained(tmp_path / "bytes")
    byte_tokenizer.tokenizer.save_pretrained(tmp_path / "bytes")
    return tmp_path / "bytes"


@pytest.fixture(params=["tiny", "bytes", "builtin-base"])
def start(request: pytest.FixtureRequest) -> str:
    fixtures = {"tiny": "tiny", "bytes": "byte_folder"}
    return str(request.getfixturevalue(fixtures[request.param])) if request.param in fixtures else request.param


@pytest.mark.parametrize("pooling", ["mask", OWN])
def test_the_vector_is_the_state_of_the_mask(start: str, pooling: str) -> None:
    encoder = load(start, pooling, "cpu")
    tokens = encoder.tokenize(TEXTS)
    at_mask = tokens.ids == encoder.text_tokenizer.mask
    assert at_mask.sum(dim=1).tolist() == [1] * len(TEXTS)
    with evaluating(encoder):
        states = encoder.states(tokens)
    np.testing.assert_allclose(encoder.encode(TEXTS), states[at_mask].numpy(), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mask", OWN])
def test_saved_loaded_and_loaded_elsewhere_the_vectors_are_the_same(start: str, pooling: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load(start, pooling, "cpu")
    encoder.save(tmp_path / "model")
    vectors = encoder.encode(TEXTS)
    again = load(tmp_path / "model", device="cpu")
    assert again.pooling.name == pooling
    assert again.fingerprint() == encoder.fingerprint()
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-6)
    elsewhere = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(elsewhere.encode(TEXTS), vectors, atol=1e-5)
    types = {module["type"] for module in json.loads((tmp_path / "model" / "modules.json").read_text())}
    assert all(name.startswith("sentence_transformers.models.") for name in types)


def test_a_copy_gives_the_same_vectors(start: str) -> None:
    """Though a copied tokenizer forgets that special tokens in a text are letters."""
    encoder = load(start, "mask", "cpu")
    np.testing.assert_allclose(copy.deepcopy(encoder).encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)


def test_a_saved_model_keeps_its_template(tiny: Path, tmp_path: Path) -> None:
    load(tiny, "mask", "cpu").save(tmp_path / "model")
    with pytest.raises(InputError, match="reads texts in a template and takes the vector at its mask"):
        load(tmp_path / "model", "mean", "cpu")
    assert load(tmp_path / "model", "mask", "cpu").pooling.name == "mask"


def test_the_paper_decides_only_for_a_raw_model() -> None:
    pooled, said = with_read_out(isotrope.load("builtin-base"), None, "mask", "promptbert")
    assert pooled.pooling.name == said.pooling == "mask"
    assert pooled.text_tokenizer.suffix.count(pooled.text_tokenizer.mask) == 1
    finished, said = with_read_out(isotrope.load("builtin"), None, "mask", "promptbert")
    assert finished.pooling.name == "mean"
    assert "comes with a pooling" in said.reason
    assert not is_raw(isotrope.load("builtin-base", pooling="mask").facts)


def test_a_model_without_a_mask_token_says_so(tiny: Path) -> None:
    tiny_one = load(tiny, device="cpu")
    tiny_one.tokenizer.mask_token = None
    with pytest.raises(InputError, match="reads the vector at a mask token in a template, and this model has no mask"):
        Encoder(tiny_one.backbone, tiny_one.tokenizer, "mask")
    kept, said = with_read_out(Encoder(tiny_one.backbone, tiny_one.tokenizer, facts={"raw": True}), None, "mask", "m")
    assert kept.pooling.name == "mean"
    assert "which it cannot have" in said.reason


def test_a_template_is_checked_before_a_model_is_loaded(sentences: Path) -> None:
    with pytest.raises(InputError, match=r"one \[X\] for the text"):
        load("builtin-base", "mask:no place for a text")


def test_positions_that_a_row_would_have_anyway_change_nothing(start: str) -> None:
    """Given as such, alone or joined with rows that have none; RoBERTa begins to count behind its padding index."""
    encoder = load(start, "mask", "cpu")
    view = encoder.tokenize(["a", "the chef"])
    alone = encoder.text_tokenizer.frame_alone(np.array([0]))
    ids = [*encoder.text_tokenizer.start, *encoder.text_tokenizer.suffix]
    usual = encoder.text_tokenizer.padded([ids])
    with evaluating(encoder):
        encoder.backbone.eval()
        assert torch.allclose(encoder(alone), encoder(usual), atol=1e-6)
        joined = encoder(join([view, alone], encoder.text_tokenizer.pad))
        assert torch.allclose(joined, torch.cat([encoder(view), encoder(usual)]), atol=1e-5)


def test_the_forward_without_padding_knows_positions(start: str) -> None:
    encoder = load(start, "mask", "cpu")
    bare = of_backbone(encoder.backbone)
    assert bare is not None
    tokens = encoder.text_tokenizer.frame_alone(np.array([0, 2, 9]))
    with evaluating(encoder):
        expected = encoder.states(tokens)
        assert torch.allclose(bare.states(tokens), expected, atol=1e-5)
    assert not torch.allclose(expected[0], expected[2], atol=1e-4)


def test_words_of_the_template_are_never_masked_or_asked_for(tiny: Path) -> None:
    encoder = load(tiny, "mask", "cpu")
    tokens = encoder.tokenize(["the chef bakes the bread"] * 50)
    masked = mask_tokens(tokens, encoder.text_tokenizer, np.random.default_rng(0), rate=0.9)
    start, behind = len(encoder.text_tokenizer.start), len(encoder.text_tokenizer.suffix)
    assert (masked.labels[:, :start] < 0).all()
    assert (masked.labels[:, -behind:] < 0).all()
    assert (masked.labels[:, start:-behind] >= 0).any()


def test_sif_weighs_tokens_itself(tiny: Path) -> None:
    encoder = load(tiny, "mask", "cpu")
    with pytest.raises(InputError, match="sif weighs the tokens of a mean; this model's pooling is 'mask'"):
        isotrope.fit_space("sif", encoder, TEXTS)
    assert not find("sif").found_in(encoder)
