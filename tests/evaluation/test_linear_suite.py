"""The linear suite: parts are what the text says, nothing of the test part is learned, and scikit-learn agrees."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.evaluation import frozen_classifier
from isotrope.evaluation.frozen_classifier import predict
from isotrope.evaluation.labelled_parts import Parts, read_parts
from isotrope.evaluation.linear import Labelled, read_labelled
from isotrope.evaluation.linear_suite import evaluate_linear
from isotrope.evaluation.suite import find_suite
from isotrope.evaluation.text_vectors import TextVectors

TOPICS = ("cooking", "sailing", "music", "garden", "space")


def labelled(topics: list[str], start: int, stop: int) -> list[tuple[str, str]]:
    return [(topics[row], TOPICS[(row // 8) % 5]) for row in range(start, stop)]


def write(path: Path, rows: list[tuple[str, ...]], header: str = "text\tlabel") -> Path:
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def made(rows: int = 240, classes: int = 3) -> tuple[Parts, TextVectors]:
    """Vectors far from the origin whose classes a linear classifier finds in part."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, classes, rows)
    vectors = (rng.normal(size=(rows, 6)) + np.eye(6)[numbers] * 1.5 + 5).astype(np.float32)
    texts = [f"text {row:04d}" for row in range(rows)]
    labels = [str(number) for number in numbers]
    cut = rows * 2 // 3
    parts = (Labelled((texts[a:b],), labels[a:b]) for a, b in ((0, cut), (cut, rows)))
    return Parts(*parts, "made up"), TextVectors(texts, vectors)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("features", ["standardised", "as_they_are"])
def test_probabilities_are_those_of_scikit_learn(features: str, classes: int) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    parts, vectors = made(classes=classes)
    found = predict(features, parts, vectors, torch.device("cpu"), seed=0)
    learn, judge = (vectors.of(part.texts[0]).astype(np.float64) for part in (parts.train, parts.test))
    if features == "standardised":
        scale = StandardScaler().fit(learn)
        learn, judge = scale.transform(learn), scale.transform(judge)
    twin = LogisticRegression(C=found.strength, tol=1e-8, max_iter=10_000).fit(learn, parts.train.labels)
    assert np.allclose(found.probabilities.numpy(), twin.predict_proba(judge), atol=0.01)


def test_the_test_part_changes_nothing_that_is_learned() -> None:
    parts, vectors = made()
    turned = Parts(parts.train, Labelled(parts.test.texts, parts.test.labels[::-1]), "made up")
    first, second = (predict("standardised", each, vectors, torch.device("cpu"), seed=0) for each in (parts, turned))
    assert first.strength == second.strength
    assert torch.equal(first.probabilities, second.probabilities)


def test_three_ways_to_name_the_parts(tmp_path: Path, topics: list[str]) -> None:
    train, dev, test = (labelled(topics, *rows) for rows in ((0, 80), (80, 120), (120, 200)))
    rows = [(*row, split) for part, split in ((train, "train"), (dev, "validation"), (test, "test")) for row in part]
    whole = read_parts(write(tmp_path / "all.tsv", rows, "text\tlabel\tsplit"))
    assert whole.dev is not None
    assert [len(part.labels) for part in (whole.train, whole.dev, whole.test)] == [80, 40, 80]
    two = read_parts(write(tmp_path / "train.tsv", train), write(tmp_path / "test.tsv", test))
    assert (two.train, two.test, two.dev) == (whole.train, whole.test, None)
    one = read_parts(tmp_path / "train.tsv", seed=3)
    assert (len(one.train.labels), len(one.test.labels), one.shared) == (64, 16, 0)
    assert set(one.test.labels) == set(TOPICS)
    assert read_parts(tmp_path / "train.tsv", seed=3) == one
    assert read_parts(tmp_path / "train.tsv", seed=4) != one
    assert read_parts(train, test).test == two.test  # lists of (text, label)
    columns = ["text", "label"]  # the split is not named, and so not looked at
    assert len(read_parts(tmp_path / "all.tsv", columns=columns).train.labels) == 160


def test_a_rare_class_is_learned_and_shared_texts_are_counted(topics: list[str]) -> None:
    rows = [*labelled(topics, 0, 40), ("a lonely text", "rare")]
    for seed in range(10):
        assert "rare" in read_parts(rows, seed=seed).train.labels
    both = read_parts(labelled(topics, 0, 40), labelled(topics, 38, 60))
    assert both.shared == 2


def test_the_suite_on_a_real_encoder(
    tiny: Path, topics: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = (
        write(tmp_path / f"{name}.tsv", labelled(topics, *rows))
        for name, rows in (("train", (0, 160)), ("test", (160, 240)))
    )
    encoder = isotrope.load(tiny)
    before = encoder.fingerprint()
    results = isotrope.evaluate(encoder, "linear", texts=train, test=test)
    assert encoder.fingerprint() == before
    found = results.scores["linear"]
    assert (found["classes"], found["train"], found["test"]) == (5, 160, 80)
    assert found["majority"] == 20
    for name in ("standardised", "as_they_are", "knn"):
        assert found[name]["top_1"] > 90  # topics have words of their own
        assert found[name]["top_5"] == 100
        assert 0 <= found[name]["calibration_error_interval"][0] <= found[name]["calibration_error_interval"][1]
    assert list(find_suite("linear")().summary(results)) == ["linear_top_1", "knn_top_1"]
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", str(tiny), "--suite", "linear", "--text", str(train), "--test", str(test), "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["scores"]["linear"]["train"] == 160
    assert "commonest class" in results.table()


def test_shuffled_labels_give_chance(tiny: Path, topics: list[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [(topics[row], str(rng.integers(2))) for row in range(300)]
    found = evaluate_linear(isotrope.load(tiny), rows).scores["linear"]
    assert found["standardised"]["top_1"] < 70
    assert found["knn"]["top_1"] < 70


@pytest.mark.parametrize(
    ("rows", "header", "said"),
    [
        ([("a", "b")], "text\tother", "labelled need text/label or sentence/label"),
        ([("a", "x", "train"), ("b", "y", "train")], "text\tlabel\tsplit", "no row of split test; splits found: train"),
        ([("a", "x", "some")], "text\tlabel\tsplit", r":2: unknown split 'some'"),
        ([("a", "x"), ("b", "y")], "text\tlabel", "At least 10 labelled records are needed"),
        ([("a", "x", "train"), ("b", "", "test")], "text\tlabel\tsplit", r"mine.tsv:3: the label is empty"),
        ([("a", "x", "train"), ("b", "y", "")], "text\tlabel\tsplit", r"mine.tsv:3: the split is empty; write train"),
        ([(f"t{row}", "x") for row in range(20)], "text\tlabel", "labelled 'x'; at least two classes"),
        ([(f"t{row}", f"c{row}") for row in range(20)], "text\tlabel", "judge by: 20 records have 20 classes"),
    ],
)
def test_bad_text_is_refused_before_the_model_is_loaded(
    tmp_path: Path, rows: list[tuple[str, ...]], header: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        isotrope.evaluate("no/such/model", "linear", texts=write(tmp_path / "mine.tsv", rows, header))


def test_what_does_not_go_together_is_refused(tmp_path: Path, topics: list[str]) -> None:
    rows = labelled(topics, 0, 40)
    split = write(
        tmp_path / "split.tsv", [(*row, "train") for row in rows] + [("x", "music", "test")], "text\tlabel\tsplit"
    )
    test = write(tmp_path / "test.tsv", rows[:5])
    with pytest.raises(InputError, match="has a column split, and a test file was given too"):
        isotrope.evaluate("no/such/model", "linear", texts=split, test=test)
    with pytest.raises(InputError, match="needs labelled text: give texts"):
        isotrope.evaluate("no/such/model", "linear")
    strange = write(tmp_path / "strange.tsv", [("x", "opera")])
    with pytest.raises(InputError, match="a class that the training part lacks: 'opera'"):
        isotrope.evaluate("no/such/model", "linear", texts=write(tmp_path / "train.tsv", rows), test=strange)
    with pytest.raises(InputError, match="The sts suite takes no test; leave it out, or choose linear"):
        isotrope.evaluate("no/such/model", "sts", test=test)
    with pytest.raises(InputError, match="neighbours and temperature must be above 0"):
        evaluate_linear(isotrope.load("builtin-base"), rows, neighbours=0)
    assert len(read_labelled(split).labels) == 41


def test_without_a_dev_part_the_penalty_is_chosen_on_texts_it_did_not_learn_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenth of the training part; the test part has no say."""
    parts, vectors = made()
    seen: list[tuple[torch.Tensor, ...]] = []
    plain = frozen_classifier.by_dev
    monkeypatch.setattr(frozen_classifier, "by_dev", lambda *given: (seen.append(given), plain(*given))[1])
    predict("as_they_are", parts, vectors, torch.device("cpu"), 0)
    learned, labels, chosen, wanted = seen[0][:4]
    assert (len(learned), len(chosen)) == (144, 16)
    assert (len(labels), len(wanted)) == (144, 16)
    assert len(torch.cat([learned, chosen]).unique(dim=0)) == 160
