"""Several labels a text: lists and bars mean the same, wherever the rows come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.heads.label_rows import labelled_records

ROWS: list[tuple[str, list[str]]] = [
    ("the boat", ["sea", "travel"]),
    ("the bread", ["food"]),
    ("nothing of it", []),
    ("fish on board", ["food", "sea"]),
]
JOINED = [(text, "|".join(labels)) for text, labels in ROWS]


def found(source: Any, columns: list[str] | None = None) -> list[tuple[str, str]]:
    return [(record.texts[0], record.value or "") for record in labelled_records(source, columns)]


@pytest.mark.parametrize("name", ["label", "labels"])
def test_lists_are_read_from_every_source(tmp_path: Path, name: str) -> None:
    rows = [{"text": text, name: labels, "other": 1} for text, labels in ROWS]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in JOINED), encoding="utf-8")
    for source in (tmp_path / "a.jsonl", tmp_path / "a.parquet", tmp_path / "a.tsv", ROWS, rows, JOINED):
        assert found(source) == JOINED, source
    assert found(tmp_path / "a.jsonl", ["text", name]) == found(rows, ["text", name]) == JOINED


@pytest.mark.parametrize("label", ["a|b", None, ["a"], {"a": 1}])
def test_what_is_no_label_is_refused(tmp_path: Path, label: Any) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "a", "label": ["x", label]}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.jsonl:1: .* is no label"):
        found(path)


def test_a_head_learns_and_predicts_lists(tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"text": f"{text} number {n}", "labels": labels} for n in range(8) for text, labels in ROWS]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    isotrope.train("head", path, model=tiny, output=tmp_path / "run", multi_label=True)
    seen = isotrope.predict(tmp_path / "run", path).to_dict()["predictions"]  # a run folder, as good as its model
    assert [one["labels"] for one in seen[:4]] == [sorted(labels) for _, labels in ROWS]
    assert all(one["label"] == "|".join(one["labels"]) for one in seen)
    path.write_text(path.read_text(encoding="utf-8").replace("labels", "label"), encoding="utf-8")
    with pytest.raises(InputError, match="A list of labels needs multi_label"):
        isotrope.train("head", path, model=tiny, output=tmp_path / "other")
    assert not (tmp_path / "other").exists()
