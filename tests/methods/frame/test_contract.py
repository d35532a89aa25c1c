"""A slip in a new method is one sentence that names the method and the step, not an error somewhere in the frame."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.contract import check_class
from isotrope.methods.frame.method_registry import registry
from isotrope.methods.frame.outside_methods import VARIABLE

WRITTEN = """
from dataclasses import dataclass
from typing import Annotated

from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings, TemperatureSetting
from isotrope.objectives import info_nce
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Trained


@dataclass(frozen=True)
class MineSettings(Settings):
    temperature: TemperatureSetting = 0.05


class Mine(Method[MineSettings]):
    card = Card(name="mine", title="Mine", paper="None", year=2026, family="contrastive", read_out="cls")
    Settings = MineSettings
    shared_views = ("texts",)

    def towers(self, encoder):
        return {"head": Trained(tanh_head(encoder.dimension))}

    def views(self, records, rng):
        return {"texts": self.frame(records.tokens())}

    def represent(self, batch):
        first, second = self.encoder.embed(batch["texts"], batch["texts"])
        return {"first": first, "second": second}

    def loss(self, representations, generator):
        return {"contrastive": info_nce(representations["first"], representations["second"], self.settings.temperature)}

    def weights(self):
        return {"contrastive": 0.5}
"""


def train(folder: Path, monkeypatch: pytest.MonkeyPatch, written: str, tiny: Path, data: Path, **given: float) -> None:
    file = folder / "mine.py"
    file.write_text(written, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(file))
    isotrope.train("mine", data, model=tiny, output=folder / "run", max_steps=1, batch_size=8, held_out=0, **given)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_method_without_a_slip_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path, sentences: Path
) -> None:
    train(tmp_path, monkeypatch, WRITTEN, tiny, sentences, mlm_weight=0.1)


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("    Settings = MineSettings\n", "", "Mine takes MineSettings; add the line `Settings = MineSettings`"),
        ('family="contrastive"', 'family="contrast"', "Mine: unknown family 'contrast' on the card; did you mean"),
        ('read_out="cls"', 'read_out="clz"', "Unknown pooling 'clz'"),
        ('name="mine"', 'name="Mine"', "the card's name 'Mine' must be small letters"),
        ("Trained(tanh_head(encoder.dimension))", "tanh_head(encoder.dimension)", "mine: towers returned a Dense as"),
        ('{"texts": self.frame(records.tokens())}', "self.frame(records.tokens())", "views must return a dictionary"),
        ("self.frame(records.tokens())", "records.tokens()", "views returned a list as 'texts', which is no view"),
        ('{"first": first, "second": second}', "(first, second)", "represent must return a dictionary of tensors"),
        ('{"first": first, "second": second}', '{"first": 1}', "represent must return a dictionary of tensors"),
        (
            '{"first": first, "second": second}',
            '{"first": first[:4], "second": second[:4]}',
            "represent returned 'first' of shape (4, 32) for 8 records; each record needs its row",
        ),
        (
            '{"first": first, "second": second}',
            '{"first": first, "second": second.mean()}',
            "of shape () for 8 records",
        ),
        ('return {"contrastive": info_nce', "return {info_nce", "loss must return a dictionary of named terms"),
        ('return {"contrastive": info_nce(', 'return {"contrastive": (', "a term is one number"),
        ('return {"contrastive": 0.5}', 'return {"contrast": 0.5}', "weights names 'contrast', which is no term"),
        ('shared_views = ("texts",)', 'shared_views = ("text",)', "views returned none of its shared_views (text)"),
    ],
)
def test_a_slip_is_one_sentence(
    right: str,
    wrong: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tiny: Path,
    sentences: Path,
) -> None:
    assert right in WRITTEN
    written = WRITTEN.replace(right, wrong)
    if wrong.endswith("("):
        written = written.replace(
            '(representations["first"], representations["second"], self.settings.temperature)',
            'representations["first"]',
        )
    with pytest.raises(InputError, match=re.escape(sentence)):
        train(tmp_path, monkeypatch, written, tiny, sentences, mlm_weight=0.1)


def test_the_methods_of_the_package_keep_the_contract() -> None:
    for method in registry().values():
        check_class(method)
