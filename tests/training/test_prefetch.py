"""What the loop is supplied with: whole dialogues, classes with company, and an epoch as long as what is dealt out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.data.corpus import Records
from isotrope.errors import InputError
from isotrope.methods.simcse import SimCSE

SHORT: dict[str, Any] = {"eval_steps": 100, "learning_rate": 1e-3, "held_out": 40, "max_length": 32, "epochs": 1}
pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Records]:
    """The records of every batch that SimCSE makes views of."""
    found: list[Records] = []
    views = SimCSE.views

    def noted(self: SimCSE, records: Records, rng: np.random.Generator) -> Any:
        found.append(records)
        return views(self, records, rng)

    monkeypatch.setattr(SimCSE, "views", noted)
    return found


def test_an_epoch_of_documents_is_as_many_steps_as_they_fill(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: list[Records]
) -> None:
    monkeypatch.setattr(SimCSE, "card", replace(SimCSE.card, needs="dialogues"))
    monkeypatch.setattr(SimCSE, "batches", "by-document")
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", batch_size=9, **SHORT)
    # 50 documents of eight, of which five are held out.
    assert max(line["step"] for line in run.history) == 5
    rows = [row for records in seen[:5] for row in records.rows]
    assert len(set(rows)) == 45
    assert all(row % 8 == 0 for row in rows)
    assert {len(whole) for records in seen for whole in records.whole()} == {8}


def test_more_documents_asked_for_than_there_are(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimCSE, "card", replace(SimCSE.card, needs="dialogues"))
    monkeypatch.setattr(SimCSE, "batches", "by-document")
    with pytest.raises(
        InputError, match=r"50 different dialogues \(45 to train on and 5 held out\), fewer than batch_size \(64\)"
    ):
        isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", batch_size=64, **SHORT)


def test_classes_come_in_company(
    tiny: Path, topics: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: list[Records]
) -> None:
    monkeypatch.setattr(SimCSE, "card", replace(SimCSE.card, needs="labelled"))
    monkeypatch.setattr(SimCSE, "batches", "by-class")
    rows = [(text, text.split()[1]) for text in topics[:400]]
    run = isotrope.train("simcse", rows, model=tiny, output=tmp_path / "run", batch_size=20, **SHORT)
    assert run.corpus.classes == ["chef", "farmer", "pianist", "pilot", "sailor"]
    assert len(seen) >= 18
    assert all(np.bincount(records.labels())[records.labels()].min() >= 2 for records in seen)
