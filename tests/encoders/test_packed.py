"""The encoders that ship in the package: small on disk, float32 in memory, near the weights they were packed from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import isotrope
from isotrope.encoders.packed import WEIGHTS, pack_weights, unpack_weights, write_packed
from isotrope.errors import InputError


def test_a_row_comes_back_to_within_half_a_step() -> None:
    weights = {
        "matrix": torch.randn(50, 20, generator=torch.Generator().manual_seed(0)),
        "vector": torch.linspace(-1, 1, 7),
    }
    weights["matrix"][3] = 0
    again = unpack_weights(pack_weights(weights))
    step = weights["matrix"].abs().amax(dim=1, keepdim=True) / 127
    assert ((again["matrix"] - weights["matrix"]).abs() <= 0.51 * step + 1e-3 * step).all()
    assert torch.equal(again["matrix"][3], torch.zeros(20))
    assert torch.allclose(again["vector"], weights["vector"], atol=1e-3)
    assert all(tensor.dtype == torch.float32 for tensor in again.values())


def test_packing_twice_changes_nothing_more() -> None:
    once = unpack_weights(pack_weights({"matrix": torch.randn(9, 5)}))
    assert torch.allclose(unpack_weights(pack_weights(once))["matrix"], once["matrix"], rtol=2e-3)


def test_a_packed_folder_loads_with_nearly_the_same_vectors_and_its_head(tiny: Path, tmp_path: Path) -> None:
    encoder = isotrope.load(tiny, language_head=True)
    write_packed(encoder, tmp_path / "packed")
    again = isotrope.load(tmp_path / "packed", language_head=True)
    texts = ["the chef bakes the bread", "the pilot lands the rocket near the crater"]
    first, second = encoder.encode(texts, normalize_embeddings=True), again.encode(texts, normalize_embeddings=True)
    assert (first * second).sum(axis=1) == pytest.approx([1, 1], abs=1e-3)
    assert again.backbone.dtype == torch.float32
    decoder, table = again.language_model.cls.predictions.decoder, again.backbone.embeddings.word_embeddings  # type: ignore[union-attr]
    assert decoder.weight is table.weight  # tied, as it was
    assert (
        again.language_model.cls.predictions.bias.abs().sum() == encoder.language_model.cls.predictions.bias.abs().sum()
    )  # type: ignore[union-attr]


def test_a_packed_model_that_is_loaded_and_saved_is_an_ordinary_one(tiny: Path, tmp_path: Path) -> None:
    write_packed(isotrope.load(tiny), tmp_path / "packed")
    packed = isotrope.load(tmp_path / "packed")
    packed.save(tmp_path / "plain")
    assert np.allclose(isotrope.load(tmp_path / "plain").encode("the chef"), packed.encode("the chef"), atol=1e-6)
    with pytest.raises(InputError, match="no masked-language head"):
        isotrope.load(tmp_path / "packed", language_head=True)


def test_weights_that_do_not_fit_are_refused(tiny: Path, tmp_path: Path) -> None:
    write_packed(isotrope.load(tiny), tmp_path / "packed")
    weights = load_file(tmp_path / "packed" / WEIGHTS)
    weights.pop("encoder.layer.0.attention.self.query.weight")
    save_file(weights, tmp_path / "packed" / WEIGHTS)
    with pytest.raises(InputError, match="do not fit"):
        isotrope.load(tmp_path / "packed")


@pytest.mark.parametrize(("name", "dimension"), [("builtin", 384), ("builtin-base", 384), ("builtin-static", 256)])
def test_the_shipped_encoders_load_and_know_english(name: str, dimension: int) -> None:
    encoder = isotrope.load(name)
    near, far = encoder.similarity(
        "A man is playing a guitar.", ["Someone plays an instrument.", "The stock market fell today."]
    )[0]
    assert near > far + 0.1
    assert encoder.dimension == dimension


def test_the_base_predicts_a_hidden_word() -> None:
    encoder = isotrope.load("builtin-base", language_head=True)
    tokens = encoder.tokenizer("Paris is the capital of [MASK].", return_tensors="pt")
    place = int((tokens["input_ids"][0] == encoder.tokenizer.mask_token_id).nonzero())
    with torch.no_grad():
        scores = encoder.language_model(**tokens).logits[0, place]  # type: ignore[misc]
    assert "france" in encoder.tokenizer.convert_ids_to_tokens(scores.topk(20).indices.tolist())


def test_the_shipped_files_stay_small() -> None:
    folder = Path(isotrope.__file__).parent / "encoders" / "builtin"
    limits = {"builtin": 20_000_000, "builtin-base": 20_000_000, "builtin-static": 8_000_000}
    for name, limit in limits.items():
        assert sum(file.stat().st_size for file in (folder / name).iterdir()) < limit
    assert {place.name for place in folder.iterdir()} == {*limits}
