"""Alignment and uniformity of all checkpoints on scored pairs: logged at each evaluation, drawn for several runs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from report_world import World

import isotrope
from isotrope.evaluation.checkpoint_judge import scored_measures
from isotrope.evaluation.eval_data import read_eval_data
from isotrope.report.build import Report
from isotrope.report.plane_figures import checkpoint_table
from isotrope.training.run_folder import RunFolder
from isotrope.training.state import TrainingWarning

LOOP = {"max_steps": 4, "eval_steps": 2, "batch_size": 16, "held_out": 60, "max_length": 32, "learning_rate": 1e-3}


def stsb(world: World) -> Path:
    return world.data / "sts" / "stsb.test.tsv"


@pytest.fixture(scope="module")
def runs(world: World, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("planes")
    made = [folder / "dropout", folder / "none"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        for place, dropout in zip(made, (0.1, 0.0), strict=True):
            isotrope.train(
                "simcse", world.text, model=tiny, output=place, eval_data=stsb(world), dropout=dropout, **LOOP
            )
    return made


@pytest.fixture(scope="module")
def planes(runs: list[Path]) -> Report:
    return isotrope.report(*runs, sentences=40)


def by_definition(encoder: isotrope.Encoder, file: Path) -> tuple[float, float]:
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    unit = encoder.encode([row[0] for row in rows] + [row[1] for row in rows], normalize_embeddings=True)
    unit = unit.astype(float)
    alike = [i for i, row in enumerate(rows) if float(row[2]) > 0.8 * max(float(row[2]) for row in rows)]
    alignment = np.mean([((unit[i] - unit[i + len(rows)]) ** 2).sum() for i in alike])
    distances = [((unit[i] - unit[j]) ** 2).sum() for i in range(len(unit)) for j in range(i)]
    return float(alignment), float(np.log(np.mean(np.exp(-2 * np.array(distances)))))


def test_an_evaluation_logs_alignment_and_uniformity_of_the_scored_pairs(runs, world, tiny):
    lines = [line for line in RunFolder(runs[0]).history() if "evaluation" in line]
    assert [line["step"] for line in lines] == [0, 2, 4]
    assert all(line["chosen_by"] == "spearman" for line in lines)
    kept = isotrope.load(runs[0] / "model")
    logged = {line["step"]: line["evaluation"] for line in lines}
    for step, encoder in ((0, isotrope.load(tiny)), (kept.facts["selected_step"], kept)):
        found = logged[step]["eval_alignment"], logged[step]["eval_uniformity"]
        assert found == pytest.approx(by_definition(encoder, stsb(world)), abs=1e-5)


def test_several_files_are_averaged(world, tiny):
    encoder = isotrope.load(tiny)
    other = world.data / "sts" / "sick.test.tsv"
    alone = [scored_measures(encoder, read_eval_data([file]).scored) for file in (stsb(world), other)]
    both = scored_measures(encoder, read_eval_data([stsb(world), other]).scored)
    for name in ("spearman", "eval_alignment", "eval_uniformity"):
        assert both[name] == pytest.approx((alone[0][name] + alone[1][name]) / 2)
    assert both["spearman sick.test"] == alone[1]["spearman"]


def test_scores_that_find_nothing_alike_have_no_alignment(tiny, tmp_path, topics):
    file = tmp_path / "zero.tsv"
    rows = [f"{topics[i]}\t{topics[i + 1]}\t{-i % 3 - 2}" for i in range(12)]
    file.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    found = scored_measures(isotrope.load(tiny), read_eval_data([file]).scored)
    assert "eval_uniformity" in found
    assert np.isfinite(list(found.values())).all()


def test_the_runs_share_a_plane_with_every_checkpoint(planes, runs):
    panel = next(panel for panel in planes.figures["plane"].panels if "scored pairs" in panel.title)
    assert [series.name for series in panel.series] == ["dropout", "none"]
    assert "stsb.test.tsv" in panel.note
    for series, place in zip(panel.series, runs, strict=True):
        logged = [line["evaluation"] for line in RunFolder(place).history() if "evaluation" in line]
        assert series.trail is not None
        assert series.trail.x == [one["eval_uniformity"] for one in logged]
        assert series.trail.y == [one["eval_alignment"] for one in logged]
        kept = isotrope.load(place / "model").facts["selected_step"]
        assert (series.x, series.y) == ([series.trail.x[kept // 2]], [series.trail.y[kept // 2]])


def test_the_table_has_every_checkpoint_and_marks_the_kept_one(planes):
    head, *rows = checkpoint_table(planes.findings)
    assert head == ("run", "step (* kept)", "eval_uniformity", "eval_alignment", "spearman")
    assert [row[0] for row in rows] == ["dropout"] * 3 + ["none"] * 3
    assert sum("*" in row[1] for row in rows) == 2
    assert all(row[4] for row in rows)
    assert "Every checkpoint" in planes.html()


def test_runs_without_scored_pairs_show_their_own_text(report, world):
    assert "eval" not in report.findings.plane
    head, *rows = checkpoint_table(report.findings)
    assert head[2:4] == ("uniformity", "alignment")
    assert len(rows) == 8


def test_runs_judged_on_other_pairs_are_said(runs, tmp_path):
    import shutil

    other = tmp_path / "elsewhere"
    shutil.copytree(runs[1], other)
    facts = json.loads((other / "run.json").read_text(encoding="utf-8"))
    (other / "run.json").write_text(json.dumps({**facts, "eval_data": ["sick.trial.tsv"]}), encoding="utf-8")
    plane = isotrope.report(runs[0], other, sentences=40).findings.plane["eval"]
    assert "dropout on stsb.test.tsv, elsewhere on sick.trial.tsv" in plane.of


@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_plane_is_drawn_with_its_arrows(planes, tmp_path, form):
    assert planes.save(tmp_path / f"plane.{form}", figure="plane").stat().st_size > 5000


def test_the_read_out_figure_has_a_line_for_each_pooling(report):
    panels = report.figures["read-out"].panels
    assert [panel.title for panel in panels] == [card.name for card in report.findings.subjects]
    sweep = report.findings.read_outs["first"]
    panel = panels[1]
    assert [series.name for series in panel.series] == ["cls", "mean", "max"]
    cls, mean, _ = panel.series
    assert (cls.x[0], mean.x[0]) == (1, 0)  # [CLS] of layer 0 knows no text
    cells = {cell.name: cell.spearman["test"] for cell in sweep.cells}
    assert mean.y[0] == cells["layer:0"]
    assert cls.y[-1] == cells["cls"]
    assert sum(series.chosen is not None for series in panel.series) == 1
    assert "Every read-out" in report.html()
