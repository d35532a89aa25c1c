"""A model keeps its classifier through training, saving, loading and sentence-transformers, but not in a new space."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.cli import main
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.encoders.classifier import Classifier
from isotrope.heads.predictions import Prediction, Predictions

TOPICS = ("cooking", "sailing", "music", "garden", "space")
QUICK = {"max_steps": 12, "eval_steps": 12, "batch_size": 16, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def rows(topics: list[str]) -> list[tuple[str, str]]:
    """Sentences and their topics: neighbours of eight share theirs."""
    return [(text, TOPICS[number // 8 % 5]) for number, text in enumerate(topics[:400])]


@pytest.fixture(scope="module")
def labelled(rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labelled") / "labels.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tiny: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> isotrope.Run:
    return isotrope.train("head", labelled, model=tiny, output=tmp_path_factory.mktemp("head") / "run")


def accuracy(encoder: isotrope.Encoder, rows: list[tuple[str, str]]) -> float:
    found = encoder.predict([text for text, _ in rows])
    return float(np.mean([one == label for one, (_, label) in zip(found, rows, strict=True)]))


def test_the_head_learns_the_topics_and_leaves_the_vectors(
    trained: isotrope.Run, tiny: Path, rows: list[tuple[str, str]]
) -> None:
    assert accuracy(trained.encoder, rows) > 0.95
    assert trained.history[0]["evaluation"]["accuracy"] > 0.9
    again = isotrope.load(trained.folder / "model")
    text = rows[0][0]
    assert (again.encode(text) == isotrope.load(tiny).encode(text)).all()
    assert again.classifier is not None
    assert again.classifier.classes_.tolist() == sorted(TOPICS)
    assert again.predict(text) == "cooking"
    np.testing.assert_allclose(again.predict_proba([text]), trained.encoder.predict_proba([text]), atol=1e-6)
    assert again.predict_proba(text).shape == (5,)
    assert json.loads((trained.folder / "run.json").read_text())["method"] == "head"
    card = (trained.folder / "model" / "README.md").read_text(encoding="utf-8")
    assert f"\n# {trained.folder.name}\n" in card  # not the temporary name that the run was written under


def test_ten_rows_a_class_and_rows_of_python(tiny: Path, rows: list[tuple[str, str]], tmp_path: Path) -> None:
    few = [row for topic in TOPICS for row in [one for one in rows if one[1] == topic][:10]]
    run = isotrope.train("head", few, model=isotrope.load(tiny), output=tmp_path / "run")
    assert accuracy(run.encoder, rows) > 0.8
    assert 0 < float(np.max(run.encoder.predict_proba(rows[200][0]))) < 1


def test_sentence_transformers_loads_the_same_folder(trained: isotrope.Run, rows: list[tuple[str, str]]) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [text for text, _ in rows[:4]]
    theirs = SentenceTransformer(str(trained.folder / "model"), device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, trained.encoder.encode(texts), atol=1e-5)
    assert (trained.encoder.classifier.predict(theirs) == trained.encoder.predict(texts)).all()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("fine-tune", {"max_steps": 60, "eval_steps": 60, "learning_rate": 3e-3}),
        ("supcon", {}),
        ("supcon", {"cross_entropy_weight": 0.9, "max_steps": 40, "eval_steps": 40, "learning_rate": 3e-3}),
        ("deepmoji", {"max_steps": 30, "eval_steps": 30}),
    ],
)
def test_what_learns_classes_keeps_its_classifier(
    method: str, settings: dict[str, Any], tiny: Path, labelled: Path, rows: list[tuple[str, str]], tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = isotrope.train(method, labelled, model=tiny, output=tmp_path / "run", **{**QUICK, **settings})
    again = isotrope.load(run.folder / "model")
    assert again.classifier is not None
    assert again.classifier.classes_.tolist() == sorted(TOPICS)
    assert again.classifier.facts["calibration"].startswith("temperature of ")
    assert accuracy(again, rows) > 0.5
    np.testing.assert_allclose(again.predict_proba(rows[3][0]), run.encoder.predict_proba(rows[3][0]), atol=1e-5)


def test_fine_tunes_own_head_is_what_is_kept(tiny: Path, samples: dict[str, Path], tmp_path: Path) -> None:
    """Pairs are read together: what the saved classifier says is what the method measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = isotrope.train("fine-tune", samples["labelled-pairs"], model=tiny, output=tmp_path / "run", **QUICK)
    encoder = isotrope.load(run.folder / "model")
    assert encoder.classifier is not None
    assert encoder.classifier.inputs == 2
    records = [run.corpus.text(row, field) for row in run.held for field in ("premise", "hypothesis")]
    pairs = list(zip(records[::2], records[1::2], strict=True))
    wanted = [run.corpus.names[number] for number in run.corpus.numbers("label")[run.held]]
    found = (encoder.predict(pairs) == np.array(wanted)).mean()
    assert found == pytest.approx(run.history[-1]["evaluation"]["accuracy"], abs=1e-6)
    assert encoder.predict(pairs[0]) in run.corpus.names
    with pytest.raises(isotrope.InputError, match="item 0 is str, no pair"):
        encoder.predict(["one text"])


def test_a_regression_predicts_scores_on_their_own_scale(tiny: Path, samples: dict[str, Path], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = isotrope.train("fine-tune", samples["scored-pairs"], model=tiny, output=tmp_path / "run", **QUICK)
    found = run.encoder.predict([("the chef bakes", "the sailor steers"), ("a", "b")])
    assert found.shape == (2,)
    assert (abs(found - 2.5) < 3).all()
    with pytest.raises(isotrope.InputError, match="predicts a score"):
        run.encoder.predict_proba([("a", "b")])


def test_a_classifier_does_not_outlive_its_vectors(trained: isotrope.Run, sentences: Path, tmp_path: Path) -> None:
    folder = trained.folder / "model"
    assert isotrope.fit_space("standardise", folder, sentences).classifier is None
    assert isotrope.load(folder, truncate_dim=8).classifier is None
    assert isotrope.load(folder, pooling="cls").classifier is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        further = isotrope.train("simcse", sentences, model=folder, output=tmp_path / "run", max_steps=2, eval_steps=2)
    assert further.encoder.classifier is None
    assert not (further.folder / "model" / "classifier").exists()
    with pytest.raises(isotrope.InputError, match="keeps no classifier"):
        further.encoder.predict("a text")


@pytest.mark.parametrize(
    "damage",
    [
        {"classes": ["a", "b"]},
        {"classes": ["a", "a", "b", "c", "d"]},
        {"temperature": 0},
        {"activations": ["exec"]},
        {"task": "other"},
        {"inputs": 3},
    ],
)
def test_a_damaged_classifier_is_refused(damage: dict[str, Any], trained: isotrope.Run, tmp_path: Path) -> None:
    assert trained.encoder.classifier is not None
    trained.encoder.classifier.write(tmp_path / "c")
    file = tmp_path / "c" / "classifier.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage}))
    with pytest.raises(isotrope.InputError):
        Classifier.read(tmp_path / "c", trained.encoder.dimension)


def test_a_run_that_fails_at_its_end_leaves_nothing(
    tiny: Path, rows: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with run.json and no model could neither be started nor resumed."""
    with monkeypatch.context() as patch:
        patch.setattr("isotrope.encoders.classifier.Classifier.write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            isotrope.train("head", rows, tiny, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    isotrope.train("head", rows, tiny, tmp_path / "run")


def test_several_labels_a_text_and_none(tiny: Path, rows: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    words = {"cooking": "indoors|food", "music": "indoors", "sailing": "", "garden": "food", "space": ""}
    lines = [f"{text}\t{words[label]}\n" for text, label in rows]
    path.write_text("text\tlabel\n" + "".join(lines), encoding="utf-8")
    run = isotrope.train("head", path, model=tiny, output=tmp_path / "run", multi_label=True)
    assert run.encoder.classifier is not None
    assert run.encoder.classifier.names == ("food", "indoors")
    by_topic = {label: run.encoder.predict(text) for text, label in rows}
    assert by_topic == {
        "cooking": ("food", "indoors"),
        "music": ("indoors",),
        "sailing": (),
        "garden": ("food",),
        "space": (),
    }


def said(capsys: pytest.CaptureFixture[str], code: int, *words: object) -> tuple[str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    assert stop.value.code == code, captured.err
    return captured.out, captured.err


def test_the_command_prints_label_and_probability(
    capsys: pytest.CaptureFixture[str], trained: isotrope.Run, topics: list[str], tmp_path: Path
) -> None:
    model, text = trained.folder / "model", tmp_path / "a.txt"
    text.write_text(f"{topics[0]}\n\n{topics[8]}\n{'chef ' * 200}\n", encoding="utf-8")
    out, err = said(capsys, 0, "predict", model, text, "--json", "--top", "2", "--output", tmp_path / "p.tsv")
    found = json.loads(out)
    assert [one["label"] for one in found["predictions"]][:2] == ["cooking", "sailing"]
    assert [one["line"] for one in found["predictions"]] == [1, 3, 4]
    assert all(len(one["probabilities"]) == 2 for one in found["predictions"])
    assert (found["cut"], found["empty_left_out"]) == (1, 1)
    assert "1 of 3 texts are longer" in err
    table = (tmp_path / "p.tsv").read_text(encoding="utf-8").splitlines()
    assert table[0] == "line\tlabel\tprobability\ttext"
    assert len(table) == 4
    assert "cooking" in said(capsys, 0, "predict", model, topics[0])[0]
    assert "no such file" in said(capsys, 2, "predict", model, "missing.txt")[1].lower()
    assert "The text is empty" in said(capsys, 2, "predict", model, " ")[1]
    assert "keeps no classifier" in said(capsys, 2, "predict", "builtin-static", text)[1]
    assert ".tsv or .jsonl" in said(capsys, 2, "predict", model, text, "--output", tmp_path / "p.xlsx")[1]


def test_predictions_that_are_written_are_summed_up_on_the_screen(
    capsys: pytest.CaptureFixture[str], trained: isotrope.Run, topics: list[str], tmp_path: Path
) -> None:
    text, target = tmp_path / "a.txt", tmp_path / "p.tsv"
    text.write_text("\n".join([*topics[:7], "", *topics[8:10]]) + "\n", encoding="utf-8")
    out, _ = said(capsys, 0, "predict", trained.folder, text, "--output", target)
    assert len(target.read_text(encoding="utf-8").splitlines()) == 10
    assert topics[0][:60] not in out
    assert "cooking 7, sailing 2" in out
    assert target.name in out
    assert "probabilities:" in out
    assert topics[0][:60] in said(capsys, 0, "predict", trained.folder, text)[0]


def test_a_table_of_predictions_is_read_back_as_it_was(tmp_path: Path) -> None:
    """Quotes are text in a .tsv: a table with CSV's marks around them would be learned from with the marks."""
    texts = ['"Where" is it?', "a, b", 'no "end', "two\nlines\tand a tab"]
    Predictions([Prediction(n, (text,), '"odd" one', 0.5, {}) for n, text in enumerate(texts, 1)], "").write(
        tmp_path / "p.tsv"
    )
    found = list(read(tmp_path / "p.tsv", record_type_named("labelled")))
    assert [record.texts[0] for record in found] == [*texts[:3], "two lines and a tab"]
    assert {record.value for record in found} == {'"odd" one'}


def test_a_summary_of_many_labels_of_several_and_of_scores() -> None:
    one_each = [Prediction(n, ("a",), f"class {n}", 0.5, {}) for n in range(13)]
    (row,) = Predictions([*one_each, one_each[-1]], "").summary(Path("p.tsv"))
    assert row["texts"] == 14
    assert row["labels"].startswith("class 12 2, class 0 1, ")
    assert row["labels"].endswith(", class 8 1, and 3 more labels")
    several = [Prediction(1, ("a",), "x|y", 0.5, {}, ("x", "y")), Prediction(2, ("b",), "", 0.5, {}, ())]
    assert Predictions(several, "").label_counts() == {"x": 1, "y": 1, "(none)": 1}
    scores = [Prediction(n, ("a",), repr(float(n)), None, {}) for n in range(5)]
    (row,) = Predictions(scores, "").summary(Path("p.tsv"))
    assert row["scores"] == "0.0000 to 4.0000, mean 2.0000"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--resume"], "fitted at once"),
        (["--strength", "0"], "strength must be above 0"),
        (["--learning-rate", "1"], "Unknown setting"),
        (["--columns", "text,nothing"], "no column 'nothing'"),
    ],
)
def test_what_a_head_cannot_take_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tiny: Path, labelled: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    if words == ["--resume"]:
        (output / "checkpoints").mkdir(parents=True)
    err = said(capsys, 2, "train", "head", labelled, "--model", tiny, "--output", output, *words)[1]
    assert sentence in err
    assert not (output / "model").exists()
