"""Bad input: one sentence and exit code 2, before the work begins, and nothing half-written stays behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from report_world import World

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.report.build import Report


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(SystemExit) as stop:
            main(["report", *(str(word) for word in words)])
        said = capsys.readouterr().err
        assert stop.value.code == 2, said
        assert said.count("isotrope: ") == 1
        assert "Traceback" not in said
        assert sorted(tmp_path.rglob("*")) == before
        return said

    return run


def test_neither_run_nor_model(refused, world: World, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "note.txt").write_text("hello")
    assert "neither a run nor a model" in refused("things", "--output", "r.html")
    assert "no such model folder" in refused("./gone", "--output", "r.html", "--text", world.text)
    assert "this is a file" in refused(world.text, "--output", "r.html", "--text", world.text)


def test_a_run_without_a_model(refused, world: World, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    shutil.copytree(world.runs[0], tmp_path / "half")
    shutil.rmtree(tmp_path / "half" / "model")
    assert "this run has no model yet; finish it with" in refused("half", "--output", "r.html")


def test_a_run_whose_files_are_broken(refused, world: World, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    shutil.copytree(world.runs[0], tmp_path / "broken")
    with open(tmp_path / "broken" / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 7, "lo\n')
    assert "metrics.jsonl: a line is not JSON" in refused("broken", "--output", "r.html")
    (tmp_path / "broken" / "run.json").write_text("[1, 2]")
    (tmp_path / "broken" / "metrics.jsonl").write_text("")
    assert "not what `isotrope train` writes" in refused("broken", "--output", "r.html")


def test_one_sentence_and_no_sentences(refused, tiny: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "one.txt").write_text("only me\n")
    (tmp_path / "same.txt").write_text("again and again\n" * 50)
    (tmp_path / "empty.txt").write_text("")
    assert "1 different sentence found" in refused(tiny, "--text", "one.txt", "--output", "r.html")
    assert "1 different sentence found" in refused(tiny, "--text", "same.txt", "--output", "r.html")
    assert "empty" in refused(tiny, "--text", "empty.txt", "--output", "r.html")
    assert "no such file" in refused(tiny, "--text", "gone.txt", "--output", "r.html")
    assert "Give their file or folder as" in refused(tiny, "--output", "r.html")


def test_the_output_is_checked_before_anything_is_loaded(
    refused, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(
        "isotrope.report.build.find_subjects", lambda given: pytest.fail("the output was not checked first")
    )
    run = world.runs[0]
    assert "the folder nowhere does not exist" in refused(run, "--output", "nowhere/r.html")
    (tmp_path / "taken").mkdir()
    assert "in the way" in refused(run, "--output", "taken", "--format", "html")
    assert "Unknown format 'pmg'; did you mean 'png'" in refused(run, "--output", "r.html", "--format", "pmg")
    assert "does not end with a format that is known" in refused(run, "--output", "r.docx")
    assert "Unknown figure 'plan'; did you mean 'plane'" in refused(run, "--output", "r.png", "--figure", "plan")
    assert "svg holds a single figure; name it" in refused(run, "--output", "r.svg")
    assert "The page holds every figure" in refused(run, "--output", "r.html", "--figure", "map")
    assert "at least 10" in refused(run, "--output", "r.html", "--sentences", 3)
    assert "query is empty" in refused(run, "--output", "r.html", "--query", " ")


def test_given_twice_and_data_that_is_not_there(refused, world: World) -> None:  # type: ignore[no-untyped-def]
    assert "was given twice" in refused(world.runs[0], world.runs[0], "--output", "r.html")
    assert "no such folder of evaluation data" in refused(world.runs[0], "--output", "r.html", "--data-dir", "gone")


def test_a_figure_that_there_is_nothing_for(tiny: Path, world: World, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw the figure 'training' from"):
        isotrope.report(tiny, text=world.text, sentences=30, output=tmp_path / "t.png", figure="training")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_drawing_leaves_nothing(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(figure: object, path: Path, form: str) -> None:
        path.write_text("half")
        raise RuntimeError("stop")

    monkeypatch.setattr("isotrope.report.build.save_figure", half)
    with pytest.raises(RuntimeError, match="stop"):
        report.save(tmp_path / "map.png", figure="map")
    assert list(tmp_path.iterdir()) == []


def test_a_good_call_says_what_it_wrote(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["report", str(world.runs[0]), "--output", str(tmp_path / "r.html"), "--sentences", "30", "--json"])
    assert stop.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["rows"]] == ["tiny", "first"]
    assert (tmp_path / "r.html").stat().st_size > 10_000
