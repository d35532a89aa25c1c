"""The report says what the runs logged and what the judge says, shows every subject, and keeps the user's text
harmless.
"""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_world import NASTY, World

import isotrope
from isotrope import progress
from isotrope.report import measure
from isotrope.report.build import FIGURES, FORMATS, Report
from isotrope.report.findings import SubjectCard, TextFacts
from isotrope.report.subject_styles import COLOURS, GREYS, styles
from isotrope.training.run_folder import RunFolder


def test_the_start_comes_with_its_runs_and_is_shown_once(report: Report, world: World, tiny: Path) -> None:
    cards = report.findings.subjects
    assert [(card.name, card.role, card.start) for card in cards] == [
        ("tiny", "start", None),
        ("first", "run", "tiny"),
        ("second", "run", "tiny"),
    ]
    asked = isotrope.report(world.runs[0], tiny, sentences=30).findings.subjects
    assert [(card.name, card.role) for card in asked] == [("tiny", "start"), ("first", "run")]


def test_what_takes_long_is_said_with_the_subject_that_it_is_for(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each subject may take minutes: its bars are seen, and say whose they are."""

    def watched(*given: Any) -> Any:
        with progress.bar("encoding", 1) as advance:
            advance(1)
        return measured(*given)

    measured = measure.measure_subject
    monkeypatch.setattr(measure, "measure_subject", watched)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    with caplog.at_level("INFO", logger="isotrope"):
        isotrope.report(world.runs[0], sentences=30)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "tiny (1 of 2): encoding: 1 of 1" in said
    assert "first (2 of 2): encoding: 1 of 1" in said


def test_scores_are_those_of_the_judge(report: Report, world: World) -> None:
    table = report.findings.scores
    assert table is not None
    assert table.suite == "sts"
    for row, place in zip(table.rows, (None, *world.runs), strict=True):
        if place is not None:
            judged = isotrope.evaluate(place / "model", data_dir=world.data, seeds=42).scores["sts"]
            assert row.values["STS12"].value == judged["STS12"]["spearman"]
            assert row.values["STS12"].low == judged["STS12"]["low"]
            assert row.values["average"].value == judged["average"]["spearman"]
            assert report.findings.plane["sts"].points[row.name].alignment == judged["geometry"]["alignment"]


def test_without_data_the_score_is_what_the_run_logged_on_its_held_out_text(world: World) -> None:
    found = isotrope.report(world.runs[1], sentences=30).findings
    assert found.scores is not None
    assert found.scores.suite == "label-free"
    assert found.pairs == {}
    history = {line["step"]: line for line in RunFolder(world.runs[1]).history() if "evaluation" in line}
    selected = next(card.selected_step for card in found.subjects if card.name == "second")
    for name, step in (("tiny", 0), ("second", selected)):
        logged = history[step]["evaluation"]
        values = next(row.values for row in found.scores.rows if row.name == name)
        assert values["MRR"].value == pytest.approx(100 * logged["retrieval_mrr"], rel=1e-3)
        assert values["MRR"].low <= values["MRR"].value <= values["MRR"].high
        assert found.plane["text"].points[name].uniformity == pytest.approx(logged["uniformity"], rel=1e-3)
    assert "held-out part of second" in found.scores.protocol
    assert "trails" not in found.plane["text"].of


def test_another_text_is_taken_whole(world: World, topics: list[str], tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("\n".join(topics[600:660]) + "\n", encoding="utf-8")
    found = isotrope.report(world.runs[0], text=other, sentences=30).findings
    assert found.text == TextFacts("other.txt", records=60, duplicates=0, sample=30, seed=42)
    assert "the whole text" in found.scores.protocol
    assert set(found.map.texts) <= set(topics[600:660])
    assert "trails of first are of the text they held out themselves" in found.plane["text"].of


def test_every_checkpoint_is_on_the_trail(report: Report, world: World) -> None:
    panel = next(panel for panel in report.figures["plane"].panels if panel.title == "On your text")
    for series, place in zip(panel.series, (None, *world.runs), strict=True):
        if place is None:
            assert series.trail is None
            continue
        logged = [line["evaluation"] for line in RunFolder(place).history() if "evaluation" in line]
        assert len(logged) == 4
        assert series.trail.x == [one["uniformity"] for one in logged]
        assert series.trail.y == [one["alignment"] for one in logged]


def test_neighbours_are_the_nearest_by_cosine_and_never_the_sentence_itself(report: Report, world: World) -> None:
    sample = report.findings.map.texts
    encoder = isotrope.load(world.runs[0] / "model")
    for block in report.findings.neighbours:
        cosines = encoder.similarity([block.query], sample)[0]
        order = [sample[place] for place in np.argsort(-cosines) if sample[place] != block.query]
        assert [one.text for one in block.columns["first"]] == order[:5]
        assert block.columns["first"][0].cosine == pytest.approx(max(cosines[cosines < 0.99999]), abs=1e-3)


def test_own_queries_are_answered(world: World) -> None:
    found = isotrope.report(world.runs[0], sentences=40, queries=["a boat near the old house"]).findings.neighbours
    assert [block.query for block in found] == ["a boat near the old house"]
    assert {name: len(hits) for name, hits in found[0].columns.items()} == {"tiny": 5, "first": 5}


def test_the_page_is_one_file_that_fetches_nothing(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"""<(script|link|img|iframe)[^>]+(src|href)=""", text)
    assert set(re.findall(r"https?://[\w./]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src &#x27;none&#x27;" in text
    for name in FIGURES:
        assert f'data-figure="{name}"' in text
    assert page.stat().st_size < 1_000_000


def test_html_in_a_sentence_stays_text(report: Report, world: World) -> None:
    found = isotrope.report(world.runs[0], sentences=1000, queries=[NASTY])
    assert NASTY in found.findings.map.texts
    text = found.html()
    assert "<script>window.broken" not in text
    assert "<b>bold</b>" not in text
    values = re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)
    assert values is not None
    assert NASTY in json.loads(values[1])["map"]["texts"]


def test_the_same_call_gives_the_same_page(world: World, tmp_path: Path) -> None:
    pages = [isotrope.report(world.runs[0], sentences=30, output=tmp_path / f"{n}.html").output for n in range(2)]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert isotrope.report(world.runs[0], sentences=30, seed=1).html() != pages[0].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("form", [form for form in FORMATS if form != "html"])
def test_single_figures(report: Report, tmp_path: Path, name: str, form: str) -> None:
    path = report.save(tmp_path / f"figure.{form}", figure=name)
    if form == "png":
        assert path.read_bytes().startswith(b"\x89PNG")
    elif form == "svg":
        words = "".join(ElementTree.parse(path).getroot().itertext())
        panels = report.figures[name].panels
        assert all(panel.title in words for panel in panels)
    else:
        assert json.loads(path.read_text(encoding="utf-8")) == report.figures[name].to_json()
    assert list(tmp_path.iterdir()) == [path]


def test_everything_as_json(report: Report, tmp_path: Path) -> None:
    path = report.save(tmp_path / "all.json")
    assert json.loads(path.read_text(encoding="utf-8")) == report.findings.to_json()


def test_density_is_ordered_bins_with_their_counts(report: Report) -> None:
    for panel in report.figures["density"].panels:
        assert [series.name for series in panel.series] == ["0–1", "1–2", "2–3", "3–4", "4–5"]
        for series in panel.series:
            assert min(series.x) <= series.median <= max(series.x)


def test_runs_and_starts_never_share_a_look(report: Report) -> None:
    looks = styles(report.findings.subjects)
    assert looks["tiny"].colour in GREYS
    assert looks["first"].colour in COLOURS
    many = styles(SubjectCard(str(number), "run") for number in range(12))
    assert len(set(many.values())) == 12


def test_a_start_that_changed_is_said_and_not_shown(world: World, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "moved"
    shutil.copytree(world.runs[0], run)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    facts["model"]["fingerprint"] = "another"
    (run / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    found = isotrope.report(run, sentences=30)
    assert [card.name for card in found.findings.subjects] == ["moved"]
    assert "no 'before'" in found.findings.remarks[0]
    assert "no &#x27;before&#x27;" in found.html()


def test_names_grow_until_they_differ(world: World, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        shutil.copytree(world.runs[0], tmp_path / parent / "run")
    found = isotrope.report(
        tmp_path / "a" / "run", tmp_path / "b" / "run" / "model", text=world.text, sentences=30
    ).findings
    assert [card.name for card in found.subjects] == ["tiny", "a/run", "b/run"]


def test_models_alone_and_in_memory(tiny: Path, world: World) -> None:
    found = isotrope.report(isotrope.load(tiny), text=world.text, sentences=30)
    assert [card.name for card in found.findings.subjects] == ["encoder 1"]
    assert found.findings.trails == {}
    assert "training" not in found.figures
    assert "Settings" not in found.html()


def test_the_final_table_of_a_run_is_shown(report: Report) -> None:
    from isotrope.evaluation.worth_table import Footing, Worth, WorthRow
    from isotrope.measures.intervals import Interval
    from isotrope.report.page import worth_section

    rows = [
        WorthRow("start", 22.9, 15.1, Interval(20.1, 25.7), Interval(-9.0, -2.0)),
        WorthRow("this run", 17.0, 12.0, Interval(14.0, 20.0), None),
    ]
    worth = Worth.of(Footing("simcse", "<base>", "text.txt", "halves", True, True), 510, rows, {"builtin": "gone"})
    assert worth_section(report.findings) == ""  # the runs of these tests have none
    cards = [replace(card, worth=json.loads(json.dumps(worth.to_dict()))) for card in report.findings.subjects[-1:]]
    shown = worth_section(replace(report.findings, subjects=cards))
    assert "<td>22.9</td><td>20.1 – 25.7</td><td>15.1 %</td><td>−9.0 to −2.0</td>" in shown
    assert "Training did not pay: the start, &lt;base&gt;, finds" in shown
    assert "no row for builtin: gone" in shown
    broken = [replace(card, worth={"rows": 3}) for card in cards]
    assert worth_section(replace(report.findings, subjects=broken)) == ""
