"""The built-in encoders without transformers: the same vectors and weights, and its model for whoever asks."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import find_folder
from isotrope.encoders.plain_bert import PlainBert
from isotrope.tokens.plain_tokenizer import PlainTokenizer

TEXTS = ["The chef bakes bread.", "", "naïve café 北京 2nd ﬁ", "pilots " * 200]
NAMES = ("builtin", "builtin-base", "builtin-static")
HEAVY = "{'transformers', 'sentence_transformers', 'scipy', 'sklearn', 'torch._dynamo'} & set(sys.modules)"


def held(encoder: Encoder) -> object:
    return encoder._modules["backbone"]


def fresh(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_first_vector_waits_for_no_heavy_package() -> None:
    use = "".join(f"isotrope.load({name!r}).encode(['x'], truncate_dim=8)\n" for name in NAMES)
    fresh(f"import sys, isotrope\n{use}assert not {HEAVY}, {HEAVY}")


def test_neither_does_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    words = ["encode", "builtin", str(tmp_path / "a.txt"), "--output", str(tmp_path / "v.npy")]
    fresh(f"import sys\nfrom isotrope.cli import main\nassert main({words}) == 0\nassert not {HEAVY}, {HEAVY}")


@pytest.mark.filterwarnings("ignore::isotrope.encoders.cut_texts.CutTextWarning")
@pytest.mark.parametrize("name", NAMES)
def test_vectors_weights_and_tokens_are_those_of_the_model_of_transformers(name: str) -> None:
    encoder = isotrope.load(name, device="cpu")
    before, weights, cut = encoder.encode(TEXTS), dict(encoder.named_parameters()), encoder.text_tokenizer
    seen = (cut.fingerprint(), cut.specials, cut.vocabulary, cut.pad, cut.mask, cut.pair_frame, cut.start, cut.suffix)
    layers = encoder.layers(encoder.tokenize(TEXTS))
    assert name == "builtin-static" or isinstance(held(encoder), PlainBert)
    assert isinstance(cut.tokenizer, PlainTokenizer)
    assert encoder.backbone is held(encoder)
    assert not isinstance(encoder.backbone, PlainBert)
    assert encoder.tokenizer is cut.tokenizer
    assert not isinstance(encoder.tokenizer, PlainTokenizer)
    again = type(cut)(encoder.tokenizer)
    assert seen == (
        *(again.fingerprint(), again.specials, again.vocabulary, again.pad),
        *(again.mask, again.pair_frame, again.start, again.suffix),
    )
    assert list(dict(encoder.named_parameters())) == list(weights)
    assert all(weight is weights[key] for key, weight in encoder.named_parameters())
    np.testing.assert_allclose(encoder.encode(TEXTS), before, atol=1e-6)
    for mine, other in zip(layers, encoder.layers(encoder.tokenize(TEXTS)), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5)


def test_a_whole_reading_has_the_same_weights_and_vectors() -> None:
    late, whole = isotrope.load("builtin-base", device="cpu"), isotrope.load("builtin-base", None, "cpu", True)
    assert isinstance(held(late), PlainBert)
    assert not isinstance(held(whole), PlainBert)
    np.testing.assert_allclose(late.encode(TEXTS[:3]), whole.encode(TEXTS[:3]), atol=1e-6)
    assert late.fingerprint() == whole.fingerprint()


def test_training_has_the_dropout_of_the_model() -> None:
    encoder = isotrope.load("builtin", device="cpu")
    tokens = encoder.tokenize(TEXTS[:1])
    encoder.eval()
    assert isinstance(held(encoder), PlainBert)
    assert torch.equal(encoder(tokens), encoder(tokens))
    encoder.train()
    assert not isinstance(held(encoder), PlainBert)
    assert not torch.equal(encoder(tokens), encoder(tokens))
    encoder(tokens).sum().backward()
    assert all(weight.grad is not None for weight in encoder.parameters())


def test_making_the_model_leaves_seed_and_frozen_weights_as_they_were() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    encoder = isotrope.load("builtin", device="cpu").requires_grad_(False)
    with torch.inference_mode():
        assert encoder.backbone.config.model_type == "bert"
    assert torch.equal(torch.rand(3), expected)
    assert not any(weight.requires_grad for weight in encoder.parameters())
    assert not any(buffer.is_inference() for buffer in encoder.buffers())


def test_a_model_that_encoding_asked_for_can_be_restored_in_place() -> None:
    """On a GPU the first text asks for it, inside inference mode; "meta" is another device than that of new buffers."""
    encoder = isotrope.load("builtin", device="cpu").to("meta")
    with torch.inference_mode():
        backbone = encoder.backbone
    assert not [name for name, tensor in backbone.named_parameters() if tensor.is_inference()]
    assert not [name for name, tensor in backbone.named_buffers() if tensor.is_inference()]


def test_encoders_over_one_backbone_keep_sharing_it() -> None:
    encoder = isotrope.load("builtin", device="cpu")
    other, copied = encoder.with_prompt("query: "), copy.deepcopy(encoder)
    assert other.backbone is encoder.backbone
    assert other.tokenizer is encoder.tokenizer
    assert copied.backbone is not encoder.backbone
    np.testing.assert_allclose(copied.encode(TEXTS[:2]), encoder.encode(TEXTS[:2]), atol=1e-6)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("config.json", {"hidden_act": "gelu_new"}),
        ("config.json", {"is_decoder": True}),
        ("tokenizer_config.json", {"do_lower_case": False}),
        ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"}),
    ],
)
def test_another_shape_is_read_by_transformers(file: str, change: dict[str, object], tmp_path: Path) -> None:
    folder = shutil.copytree(find_folder("builtin"), tmp_path / "packed")
    facts = json.loads((folder / file).read_text(encoding="utf-8"))
    (folder / file).write_text(json.dumps(facts | change), encoding="utf-8")
    encoder = isotrope.load(folder, device="cpu")
    assert not isinstance(held(encoder), PlainBert)
    assert not isinstance(encoder.text_tokenizer.tokenizer, PlainTokenizer)


def test_what_is_saved_is_the_whole_model(tmp_path: Path) -> None:
    encoder = isotrope.load("builtin", device="cpu")
    before = encoder.encode(TEXTS[:3])
    encoder.save(tmp_path / "model")
    np.testing.assert_allclose(isotrope.load(tmp_path / "model", device="cpu").encode(TEXTS[:3]), before, atol=1e-6)
