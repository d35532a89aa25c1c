"""What tests of several processes share."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file


@pytest.fixture(scope="session")
def still(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny encoder without dropout, and with larger weights:

    fresh ones give all texts one vector, and hardly a gradient.
    """
    folder = tmp_path_factory.mktemp("still") / "model"
    shutil.copytree(tiny, folder)
    weights = load_file(folder / "model.safetensors")
    larger = {name: 5 * weight if weight.dim() > 1 else weight for name, weight in weights.items()}
    save_file(larger, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
