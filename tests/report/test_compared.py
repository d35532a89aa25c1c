"""The folder of a comparison on a page: its table, the plane of all runs, and one run of each row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_world import World

import isotrope
from isotrope.comparison.comparison_table import Comparison
from isotrope.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")


@pytest.fixture(scope="module")
def comparison(world: World, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("compared") / "all"
    loop = {"max_steps": 2, "eval_steps": 2, "batch_size": 16, "held_out": 60, "max_length": 32}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ISOTROPE_DATA", raising=False)
        return isotrope.compare(
            world.text, "simcse", folder, model=tiny, seeds=2, vary={"temperature": "0.05,0.5"}, **loop
        )


def test_the_page_has_the_table_and_every_run_on_the_plane(comparison: Comparison, tmp_path: Path) -> None:
    assert comparison.folder is not None
    report = isotrope.report(comparison.folder, sentences=20)
    labels = ["simcse temperature=0.05", "simcse temperature=0.5"]
    assert [card.name for card in report.findings.subjects if card.role == "run"] == labels
    assert [card.settings["seed"] for card in report.findings.subjects if card.role == "run"] == [42, 42]
    page = report.html()
    assert "<h2>The comparison</h2>" in page
    for cell in (row.gain("common_mrr") for row in comparison.rows()[1:]):
        assert f"<td>{cell}</td>" in page
    assert "the same for all rows and seeds" in page
    panel = report.figures["plane"].panels[-1]
    assert panel.title == "All runs of the comparison"
    assert [one.name for one in panel.series] == labels
    second = panel.series[1]
    assert second.trail is not None
    assert second.trail.loose
    assert second.trail.x == [run.measures["uniformity"] for run in comparison.runs if run.name == labels[1]]
    assert second.x == [pytest.approx(sum(second.trail.x) / 2)]
    told = report.save(tmp_path / "all.json")
    heads = json.loads(told.read_text(encoding="utf-8"))["compared"]["heads"]
    assert heads[:3] == ["method", "MRR of all rows", "from start"]
    drawn = report.save(tmp_path / "plane.svg", figure="plane")
    assert drawn.stat().st_size > 1000


def test_a_comparison_that_cannot_be_shown_is_refused(comparison: Comparison, tmp_path: Path) -> None:
    assert comparison.folder is not None
    with pytest.raises(InputError, match="a page shows one comparison"):
        isotrope.report(comparison.folder, _copy(comparison, tmp_path / "other", {}))
    with pytest.raises(InputError, match="no run of this comparison has ended yet"):
        isotrope.report(_copy(comparison, tmp_path / "empty", {}))
    with pytest.raises(InputError, match="call it once more, which makes no run again"):
        isotrope.report(_copy(comparison, tmp_path / "old", {"table": None}))


def _copy(comparison: Comparison, folder: Path, changed: dict[str, object]) -> Path:
    folder.mkdir()
    (folder / "comparison.json").write_text(json.dumps({**comparison.to_dict(), **changed}), encoding="utf-8")
    return folder
