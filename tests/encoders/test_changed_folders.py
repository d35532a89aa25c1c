"""A model that changes in its folder is another model for what is kept: stored vectors, resumed runs, comparisons.

The weights stay as they are in each case; one value of a JSON file changes, and every vector with it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.encoders.parts.dense import Dense
from isotrope.errors import InputError
from isotrope.search.kept_index import kept_index

CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "the activation of a Dense": ("2_Dense/config.json", {"activation_function": "torch.nn.modules.activation.ReLU"}),
    "hidden_act": ("config.json", {"hidden_act": "relu"}),
    "layer_norm_eps": ("config.json", {"layer_norm_eps": 0.5}),
    "heads": ("config.json", {"num_attention_heads": 2}),
    "a decoder": ("config.json", {"is_decoder": True}),
    "the pooling": (
        "1_Pooling/config.json",
        {"pooling_mode": "max", "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True},
    ),
    "the length": ("sentence_bert_config.json", {"max_seq_length": 4}),
    "the prompt": (
        "config_sentence_transformers.json",
        {"prompts": {"q": "find the old "}, "default_prompt_name": "q"},
    ),
}


@pytest.fixture
def model(fresh: Callable[[], Encoder], tmp_path: Path) -> Path:
    torch.manual_seed(0)
    encoder = fresh()
    for name, weight in encoder.backbone.named_parameters():
        if weight.dim() == 2 and "attention" in name:
            weight.data.mul_(10)  # so that it matters how many heads there are
    encoder.with_parts([Dense(32, 16, activation=torch.nn.Tanh())]).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"the old dog eats the green bread near the river {number}\n" for number in range(60)))
    return path


def change(folder: Path, case: str) -> None:
    file, facts = CHANGES[case]
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def stored(index: Any) -> np.ndarray:
    return np.concatenate([block.vectors for block in index.engine.rows.blocks])


@pytest.mark.parametrize("case", CHANGES)
def test_search_makes_its_vectors_anew(case: str, model: Path, text: Path) -> None:
    before = stored(kept_index(load(model), text))
    assert np.array_equal(stored(kept_index(load(model), text)), before)  # from the folder next to the text
    change(model, case)
    encoder = load(model)
    found = stored(kept_index(encoder, text))
    expected = encoder.encode(text.read_text().splitlines(), normalize_embeddings=True)
    assert not np.allclose(expected, before, atol=1e-4)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
@pytest.mark.parametrize("case", ["the activation of a Dense", "hidden_act", "layer_norm_eps", "heads"])
def test_a_run_does_not_resume_from_another_start(case: str, model: Path, text: Path, tmp_path: Path) -> None:
    run = {"output": tmp_path / "run", "max_steps": 2, "batch_size": 4, "held_out": 8, "eval_steps": 1}
    isotrope.train("simcse", text, model=model, **run)
    change(model, case)
    with pytest.raises(InputError, match="model"):
        isotrope.train("simcse", text, model=model, resume=True, **{**run, "max_steps": 3})


def test_a_comparison_does_not_go_on_from_another_start(model: Path, text: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 1, "batch_size": 4, "held_out": 8, "seeds": 1, "suite": "label-free"}
    isotrope.compare(text, "simcse", tmp_path / "all", model=model, **settings)
    change(model, "hidden_act")
    with pytest.raises(InputError, match=r"model|start"):
        isotrope.compare(text, "simcse", tmp_path / "all", model=model, **settings)


def test_a_copy_of_the_folder_is_the_same_model(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "copy")
    assert load(model).fingerprint() == load(tmp_path / "copy").fingerprint()
