"""The classifier that a run keeps: what its calibration is measured on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isotrope.heads.logistic_head import measures_of
from isotrope.measures.temperature_scaling import fit_temperature
from isotrope.training import kept_classifier as room
from isotrope.training.kept_classifier import Classifying, kept_classifier


def test_no_record_is_measured_with_a_temperature_that_was_fitted_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few records and wild scores: the temperature of all of them flatters, that of the other folds does not."""
    rng = np.random.default_rng(3)
    scores, wanted = 4 * rng.normal(size=(25, 3)), rng.integers(3, size=25)
    kept: dict[str, Any] = {}

    def with_temperature(temperature: float, facts: dict[str, Any]) -> dict[str, Any]:
        kept.update(facts, temperature=temperature)
        return kept

    found = SimpleNamespace(
        task="classes", names=("a", "b", "c"), logits=lambda vectors: scores, with_temperature=with_temperature
    )

    class Method(Classifying):
        def classifier(self) -> Any:
            return found

    monkeypatch.setattr(room, "vectors_of", lambda *given: np.zeros((25, 2)))
    monkeypatch.setattr(room, "Records", lambda *given: SimpleNamespace(values=lambda: ["abc"[n] for n in wanted]))
    built: Any = SimpleNamespace(
        combined=SimpleNamespace(method=Method()),
        feed=SimpleNamespace(corpus=None),
        settings=SimpleNamespace(seed=42),
        hidden=True,
        held_usable=np.arange(25),
    )
    kept_classifier(built, None)  # type: ignore[arg-type]
    temperature = fit_temperature(scores, wanted)
    fitted = measures_of(scores, wanted, temperature, "classes")
    assert kept["temperature"] == temperature
    assert kept["measures"]["accuracy"] == fitted["accuracy"]
    assert kept["measures"]["log_loss"] > fitted["log_loss"] + 1e-3
