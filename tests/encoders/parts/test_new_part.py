"""A new saved part is one file: it is found by being there, saves, loads here and in sentence-transformers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders import parts
from isotrope.encoders.parts import part_registry
from isotrope.encoders.parts.part import KNOWN, OWN, VectorPart
from isotrope.errors import InputError

TEXTS = ["the chef bakes", "the sailor steers the boat across the windy bay", "salt"]
FILE = '''
"""Vectors folded onto fewer dimensions, each scaled by a learned weight."""

import torch

from isotrope.encoders.parts.part import OWN, VectorPart


class Fold(VectorPart):
    type_name = "TestFold"
    package = OWN

    def __init__(self, width, kept):
        super().__init__()
        self.sizes = {"width": width, "kept": kept}
        self.scale = torch.nn.Parameter(torch.randn(kept, generator=torch.Generator().manual_seed(0)))

    def forward(self, vectors):
        return vectors.unflatten(1, (-1, self.sizes["kept"])).sum(dim=1) * self.scale

    def output_width(self, width):
        return self.sizes["kept"]

    def config(self):
        return self.sizes
'''


@pytest.fixture
def fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[VectorPart]]:
    """The class of a part whose file is the only thing that was added."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "fold.py").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(parts, "__path__", [*parts.__path__, str(tmp_path / "parts")])
    part_registry._import_folder.cache_clear()
    found = part_registry.known_parts()["TestFold"]
    assert issubclass(found, VectorPart)
    yield found
    KNOWN.pop("TestFold")
    sys.modules.pop("isotrope.encoders.parts.fold")
    part_registry._import_folder.cache_clear()


def test_one_file_is_all_it_takes(fold: type[Any], tiny: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = isotrope.load(tiny, device="cpu")
    encoder.parts.append(fold(32, 8))
    expected = encoder.encode(TEXTS)
    assert expected.shape == (3, encoder.dimension) == (3, 8)
    encoder.save(tmp_path / "model")
    entry = json.loads((tmp_path / "model" / "modules.json").read_text(encoding="utf-8"))[-1]
    assert (entry["path"], entry["type"]) == ("2_TestFold", "isotrope.encoders.parts.st_modules.TestFold")
    again = isotrope.load(tmp_path / "model", device="cpu")
    assert again.encode(TEXTS) == pytest.approx(expected, abs=1e-6)
    assert again.fingerprint() == encoder.fingerprint()
    there = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True, trust_remote_code=True)
    assert there.encode(TEXTS) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)


def test_damage_of_its_folder_is_one_sentence_without_a_line_of_its_own(
    fold: type[Any], tiny: Path, tmp_path: Path
) -> None:
    encoder = isotrope.load(tiny, device="cpu")
    encoder.parts.append(fold(32, 8))
    encoder.save(tmp_path / "model")
    place = tmp_path / "model" / "2_TestFold"
    for config in ('{"width": 32, "kept": 4}', '{"width": 32}', '{"width": 32, "kept": 8, "colour": "red"}'):
        (place / "config.json").write_text(config, encoding="utf-8")
        with pytest.raises(InputError, match="do not fit together"):
            isotrope.load(tmp_path / "model")
    (place / "config.json").write_text('{"width": 32, "kept": 8}', encoding="utf-8")
    (place / "model.safetensors").unlink()
    with pytest.raises(InputError, match="is missing"):
        isotrope.load(tmp_path / "model")


def test_a_class_that_was_imported_will_do_as_well(tiny: Path, tmp_path: Path) -> None:
    class Doubled(VectorPart):
        type_name = "TestDoubled"
        package = OWN

        def forward(self, vectors: torch.Tensor) -> torch.Tensor:
            return 2 * vectors

    try:
        encoder = isotrope.load(tiny, device="cpu")
        plain = encoder.encode(TEXTS)
        doubled = encoder.with_parts([Doubled()])
        doubled.save(tmp_path / "model")
        assert np.array_equal(isotrope.load(tmp_path / "model", device="cpu").encode(TEXTS), 2 * plain)
        assert not list((tmp_path / "model" / "2_TestDoubled").glob("*.safetensors"))  # no weights, no file of them
    finally:
        KNOWN.pop("TestDoubled")
    with pytest.raises(InputError, match="names a TestDoubled module, which isotrope does not know"):
        isotrope.load(tmp_path / "model")


def test_two_parts_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="Dense is saved by Dense of isotrope"):
        type("Other", (VectorPart,), {"type_name": "Dense", "__module__": __name__})


@pytest.mark.parametrize("path", ["isotrope.encoders.elsewhere.", "isotrope.encoders.parts.st_modules.", "nowhere."])
def test_only_the_name_of_a_class_counts(path: str, tiny: Path, topics: list[str], tmp_path: Path) -> None:
    """Folders of earlier versions name classes that have moved since."""
    mapped = isotrope.fit_space("flow", isotrope.load(tiny, device="cpu"), topics[:100], max_steps=2)
    mapped.save(tmp_path / "model")
    listing = tmp_path / "model" / "modules.json"
    modules = json.loads(listing.read_text(encoding="utf-8"))
    modules[-1]["type"] = path + "IsotropeFlow"
    listing.write_text(json.dumps(modules), encoding="utf-8")
    assert isotrope.load(tmp_path / "model", device="cpu").encode(TEXTS) == pytest.approx(mapped.encode(TEXTS))


def test_reading_does_not_depend_on_writing() -> None:
    """The modules that reading needs, in a new process, do not include the writer."""
    import subprocess

    code = "import sys, isotrope.encoders.loading; sys.exit('isotrope.encoders.saving' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_stock_parts_are_no_classes_of_ours() -> None:
    from isotrope.encoders.parts import st_modules

    with pytest.raises(AttributeError, match="Dense"):
        _ = st_modules.Dense
    with pytest.raises(AttributeError, match="Nothing"):
        _ = st_modules.Nothing


def test_a_second_backbone_is_refused(tiny: Path, tmp_path: Path) -> None:
    isotrope.load(tiny, device="cpu").save(tmp_path / "model")
    listing = tmp_path / "model" / "modules.json"
    modules = json.loads(listing.read_text(encoding="utf-8"))
    listing.write_text(json.dumps([*modules, modules[0]]), encoding="utf-8")
    with pytest.raises(InputError, match="lists a Transformer and a Transformer"):
        isotrope.load(tmp_path / "model")
