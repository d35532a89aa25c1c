"""The card of a saved model: what it says is true, hubs can read it, and a person's own text is kept."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml

import isotrope


def header(folder: Path) -> dict[str, object]:
    text = (folder / "README.md").read_text(encoding="utf-8")
    found = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(found, dict)
    return found


def test_the_hubs_own_reader_takes_the_header(tiny: Path, tmp_path: Path, sentences: Path) -> None:
    from huggingface_hub import ModelCard

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "first", max_steps=2, eval_steps=2)
    card = ModelCard.load(run.folder / "model" / "README.md")
    assert card.data.library_name == "sentence-transformers"
    assert {"isotrope", "simcse"} <= set(card.data.tags or [])
    measured = {one.metric_type: one.metric_value for one in card.data.eval_results or []}
    shown = run.history[-1]["evaluation"]
    assert measured == {name: pytest.approx(value, abs=1e-5) for name, value in shown.items()}
    assert card.text.lstrip().startswith("<!-- isotrope")
    assert "# first" in card.text


def test_the_first_three_ways_to_load_run_as_they_stand(tiny: Path, tmp_path: Path) -> None:
    isotrope.load(tiny).save(tmp_path / "m")
    text = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    found = []
    for block in blocks[:2]:  # the packages of the others may be missing; tests/end_to_end has them
        scope: dict[str, object] = {}
        exec(block.replace("MODEL", str(tmp_path / "m")), scope)
        found.append(scope["vectors"])
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)  # type: ignore[arg-type]


def test_a_persons_own_card_is_kept(tiny: Path, tmp_path: Path) -> None:
    encoder = isotrope.load(tiny)
    encoder.save(tmp_path / "m")
    ours = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    (tmp_path / "m" / "README.md").write_text("# Mine\n", encoding="utf-8")
    encoder.save(tmp_path / "m")
    assert (tmp_path / "m" / "README.md").read_text(encoding="utf-8") == "# Mine\n"
    (tmp_path / "m" / "README.md").write_text(ours + "\nold", encoding="utf-8")
    encoder.save(tmp_path / "m")
    assert (tmp_path / "m" / "README.md").read_text(encoding="utf-8") == ours


def test_licence_prompts_and_hostile_names_stay_in_their_place(tiny: Path, tmp_path: Path) -> None:
    encoder = isotrope.load(tiny)
    encoder.facts = {**encoder.facts, "license": "mit", "method": "x`|y\n---\nlicense: evil"}
    encoder.prompts = {"query": "a|b`\n---\n"}
    encoder.save(tmp_path / "m")
    assert header(tmp_path / "m")["license"] == "mit"
    text = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "| prompts | query: `a/b' ---` |" in text
    assert text.count("\n---\n") == 1


def test_a_part_of_our_own_is_said(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    isotrope.fit_space("whitening", tiny, sentences, tmp_path / "white")
    assert "trust_remote_code" not in (tmp_path / "white" / "README.md").read_text(encoding="utf-8")
    isotrope.fit_space("flow", tiny, sentences, tmp_path / "flow", epochs=1)
    assert "trust_remote_code=True" in (tmp_path / "flow" / "README.md").read_text(encoding="utf-8")
