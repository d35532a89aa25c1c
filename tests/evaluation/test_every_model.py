"""``--suite all`` for models that have no layers to show: what they refuse is left out, and the rest is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.suite import Options
from isotrope.evaluation.suite_runs import plan_suites


@pytest.fixture(scope="module")
def stsb(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """STS-B alone: the files of geometry, layers and robustness."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "sts").mkdir()
    for number, split in enumerate(("dev", "test")):
        first = topics[40 * number : 40 * number + 40]
        rows = [f"a\t{text}\t{first[(row * 7) % 40]}\t{row % 6}" for row, text in enumerate(first)]
        content = "\n".join(["subset\tsentence1\tsentence2\tscore", *rows]) + "\n"
        (folder / "sts" / f"stsb.{split}.tsv").write_text(content, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def exported(tiny: Path, topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="an exported model is run by onnxruntime")
    folder = tmp_path_factory.mktemp("export") / "graph"
    isotrope.export(tiny, folder, text=topics[:20])
    return folder


def test_a_suite_of_all_that_refuses_the_model_loses_nothing(exported: Path, stsb: Path) -> None:
    found = isotrope.evaluate(exported, "all", stsb)
    assert {"geometry", "robustness"} <= found.scores.keys()
    assert found.protocol["left out"]["layers"].startswith("An exported model gives sentence vectors only")
    assert "An exported model gives" in found.table()
    with pytest.raises(InputError, match="gives sentence vectors only"):  # asked for by its name
        isotrope.evaluate(exported, "layers", stsb)


def test_an_export_has_the_geometry_of_its_model_without_words_and_layers(
    exported: Path, tiny: Path, stsb: Path
) -> None:
    found, whole = (isotrope.evaluate(one, "geometry", stsb).scores["geometry"] for one in (exported, tiny))
    assert found["text"]["uniformity"] == pytest.approx(whole["text"]["uniformity"], abs=1e-4)
    assert found["pairs"]["spearman"] == pytest.approx(whole["pairs"]["spearman"], abs=1)  # near ties turn
    assert (found["text"]["layers"], found["text"]["words"]) == ([], {"input": [], "last_layer": []})
    assert whole["text"]["layers"]


def test_a_table_of_words_has_a_geometry(stsb: Path) -> None:
    found = isotrope.evaluate("builtin-static", "geometry", stsb)
    assert found.scores["geometry"]["text"]["words"]["input"]
    assert "mean of their last states" not in found.table()


def test_each_text_is_encoded_once_by_an_export_too(
    exported: Path, stsb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path))
    first = isotrope.evaluate(exported, ["geometry", "robustness"], stsb).cost["suites"]
    assert first["geometry"]["texts encoded"] == 80
    assert first["robustness"]["taken from the cache"] == 40  # the test pairs; their changes are new
    again = isotrope.evaluate(exported, "robustness", stsb).cost
    assert again["texts encoded"] == 0


def test_int8_judges_the_export_of_a_model_and_makes_it_once(
    exported: Path,  # for the packages
    tiny: Path,
    stsb: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    caplog.set_level("INFO", logger="isotrope")
    found = isotrope.evaluate(tiny, "robustness", stsb, int8=True)
    assert found.protocol["precision"] == "int8"
    assert found.protocol["pooling"] == isotrope.load(tiny).pooling.name
    assert {task["precision"] for task in found.tasks} == {"int8"}
    assert "exported to int8: mean cosine" in caplog.text
    (folder,) = (tmp_path / "cache" / "exports").iterdir()

    caplog.clear()
    by_hand = isotrope.evaluate(folder, "robustness", stsb)
    again = isotrope.evaluate(tiny, "robustness", stsb, int8=True)
    assert by_hand.scores == again.scores == found.scores
    assert again.cost["texts encoded"] == 0
    assert "exported" not in caplog.text

    graph = folder / "onnx" / "model_quantized.onnx"
    graph.write_bytes(graph.read_bytes()[:-9])
    assert isotrope.evaluate(tiny, "robustness", stsb, int8=True).scores == found.scores
    assert "checksum differs" in caplog.text
    assert "made anew" in caplog.text


def test_without_wordnet_the_triples_are_left_out_before_a_model_is_loaded(
    stsb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_WORDNET", str(tmp_path / "nowhere"))
    (stsb / "nli").mkdir()
    for part in ("train", "dev", "test"):
        (stsb / "nli" / f"cad_snli.{part}.tsv.gz").write_bytes(b"is not opened")
    _, left_out = plan_suites("all", Options(stsb))
    assert "wordnet-base" in left_out["counterfactual"]
