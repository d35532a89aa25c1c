"""A mapped encoder loads here and in sentence-transformers with the same vectors; what is no stock module must be
trusted by name.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError

EVERY = ("whitening", "remove-components", "standardise", "sif", "sbert-wk", "flow")
OWN = ("flow", "sbert-wk")
FEW = {"flow": {"max_steps": 5}}


def elsewhere(folder: Path, texts: list[str], trust: bool) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=trust)
    return model.encode(texts, batch_size=4)


@pytest.mark.parametrize("pooling", ["mean", "first_last"])
@pytest.mark.parametrize("name", EVERY)
def test_the_same_vectors_everywhere(name: str, pooling: str, tiny: Path, texts: list[str], tmp_path: Path) -> None:
    mapped = isotrope.fit_space(name, isotrope.load(tiny, pooling=pooling, device="cpu"), texts, **FEW.get(name, {}))
    mapped.save(tmp_path / "model")
    some = [*texts[:7], "", "Salt ÉCOLE the [SEP] boat"]
    expected = mapped.encode(some)
    again = isotrope.load(tmp_path / "model", device="cpu")
    assert again.encode(some) == pytest.approx(expected, abs=1e-5)
    assert again.fingerprint() == mapped.fingerprint()
    assert again.dimension == mapped.dimension == expected.shape[1]
    assert elsewhere(tmp_path / "model", some, trust=name in OWN) == pytest.approx(expected, abs=1e-4)
    assert not list(tmp_path.rglob("*.bin"))
    assert not list(tmp_path.rglob("*.pt"))


@pytest.mark.parametrize("name", OWN)
def test_our_own_modules_are_refused_where_they_are_not_trusted(
    name: str, encoder: Encoder, texts: list[str], tmp_path: Path
) -> None:
    isotrope.fit_space(name, encoder, texts, **FEW.get(name, {})).save(tmp_path / "model")
    with pytest.raises(ValueError, match="trust_remote_code"):
        elsewhere(tmp_path / "model", texts[:1], trust=False)


@pytest.mark.parametrize("name", EVERY)
def test_the_facts_travel(name: str, encoder: Encoder, texts: list[str], tmp_path: Path) -> None:
    encoder.facts = {"method": "simcse"}
    isotrope.fit_space(name, encoder, texts, **FEW.get(name, {})).save(tmp_path / "model")
    facts = json.loads((tmp_path / "model" / "isotrope.json").read_text(encoding="utf-8"))
    assert facts["method"] == "simcse"
    assert facts["spaces"][0]["name"] == name
    assert facts["spaces"][0]["texts"] == 600
    assert "spaces" not in encoder.facts


@pytest.mark.parametrize("name", EVERY)
def test_a_fitted_model_keeps_its_pooling(name: str, encoder: Encoder, texts: list[str], tmp_path: Path) -> None:
    mapped = isotrope.fit_space(name, encoder, texts, **FEW.get(name, {}))
    mapped.save(tmp_path / "model")
    with pytest.raises(InputError, match="a space was fitted to this model's pooling"):
        isotrope.load(tmp_path / "model", pooling="cls")
    same = isotrope.load(tmp_path / "model", pooling=mapped.pooling.name)
    assert same.pooling == mapped.pooling


def test_a_broken_flow_is_one_sentence(encoder: Encoder, texts: list[str], tmp_path: Path) -> None:
    isotrope.fit_space("flow", encoder, texts, max_steps=2).save(tmp_path / "model")
    config = next((tmp_path / "model").glob("*_IsotropeFlow")) / "config.json"
    written = json.loads(config.read_text())
    for change in ({"levels": 1}, {"levels": 6}, {"colour": "red"}):
        config.write_text(json.dumps(written | change))
        with pytest.raises(InputError, match=r"do not fit together|not a multiple of"):
            isotrope.load(tmp_path / "model")


def test_a_broken_walk_is_one_sentence(encoder: Encoder, texts: list[str], tmp_path: Path) -> None:
    isotrope.fit_space("sbert-wk", encoder, texts).save(tmp_path / "model")
    config = next((tmp_path / "model").glob("*_IsotropeLayerWalk")) / "config.json"
    config.write_text('{"first_layer": 7, "window": 2}')
    with pytest.raises(InputError, match="first_layer is 7"):
        isotrope.load(tmp_path / "model")
    config.write_text('{"colour": "red"}')
    with pytest.raises(InputError, match="is not one of an SBERT-WK pooling"):
        isotrope.load(tmp_path / "model")


def test_weights_of_words_without_a_mean_are_refused(encoder: Encoder, texts: list[str], tmp_path: Path) -> None:
    isotrope.fit_space("sif", encoder, texts, components=0).save(tmp_path / "model")
    config = next((tmp_path / "model").glob("*_Pooling")) / "config.json"
    config.write_text('{"pooling_mode": "max"}')
    with pytest.raises(InputError, match="known for a mean only"):
        isotrope.load(tmp_path / "model")


def test_a_mapped_encoder_can_be_trained_on(encoder: Encoder, texts: list[str], tmp_path: Path) -> None:
    """Weights of words stay; what training saves loads."""
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(texts), encoding="utf-8")
    mapped = isotrope.fit_space("sif", encoder, texts)
    settings = {"max_steps": 2, "batch_size": 16, "eval_steps": 2, "held_out": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two steps improve nothing
        run = isotrope.train("simcse", file, model=mapped, output=tmp_path / "run", **settings)
    again = isotrope.load(run.folder / "model", device="cpu")
    assert again.encode(texts[:3]) == pytest.approx(run.encoder.encode(texts[:3]), abs=1e-5)
    with pytest.raises(InputError, match="already has a space"):
        isotrope.fit_space("sif", again, texts)
