"""The head on frozen vectors: what it learns, how its folds are drawn, that its probabilities mean what they say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from isotrope.encoders.classifier import Classifier, Layer
from isotrope.errors import InputError
from isotrope.heads import predictions
from isotrope.heads.label_sets import LabelSets
from isotrope.heads.logistic_head import fit_head
from isotrope.measures.temperature_scaling import fit_temperature, log_loss, row_losses


def clouds(rows: int, classes: int, apart: float, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(size=(classes, 12)) * apart
    numbers = np.arange(rows) % classes
    vectors = (centres[numbers] + rng.normal(size=(rows, 12))).astype(np.float32)
    return vectors, [f"class {number}" for number in numbers]


def test_ten_rows_a_class_are_enough_for_clouds_that_lie_apart() -> None:
    few, names = clouds(30, 3, 2.0)
    fitted = fit_head(few, LabelSets.of(names))
    vectors, wanted = clouds(300, 3, 2.0, seed=1)
    assert fitted.classifier.score(vectors, np.array(wanted)) > 0.95
    assert fitted.measures["accuracy"] > 0.9


def test_classes_that_nothing_can_judge_are_named(caplog: pytest.LogCaptureFixture) -> None:
    vectors, names = clouds(60, 3, 2.0)
    with caplog.at_level("INFO", "isotrope"):
        fit_head(vectors, LabelSets.of(names))
        assert "one text only" not in caplog.text
        fit_head(vectors, LabelSets.of(["news", "zope", *names[2:]]))
    assert "2 classes have one text only: news, zope;" in caplog.text


def test_a_class_that_the_accuracy_hides_is_named(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(0, 1, (90, 8)), rng.normal(0.1, 1, (6, 8))]).astype(np.float32)
    vectors[:40, 0] += 20
    names = ["bills"] * 40 + ["news"] * 50 + ["zope"] * 6
    with caplog.at_level("INFO", "isotrope"):
        fitted = fit_head(vectors, LabelSets.of(names))
    assert fitted.measures["accuracy"] > 0.85
    assert "1 of 3 classes are found in fewer than half of their held-out texts: zope 0 of 6." in caplog.text
    caplog.clear()
    with caplog.at_level("INFO", "isotrope"):
        fit_head(vectors[:90], LabelSets.of(names[:90]))
    assert "fewer than half" not in caplog.text


def test_scale_and_place_of_the_vectors_change_nothing() -> None:
    vectors, names = clouds(60, 3, 0.7)
    plain, moved = (fit_head(one, LabelSets.of(names)) for one in (vectors, 40 * vectors + 5))
    assert plain.strength == moved.strength
    np.testing.assert_allclose(
        plain.classifier.predict_proba(vectors), moved.classifier.predict_proba(40 * vectors + 5), atol=1e-3
    )


def test_the_temperature_undoes_a_classifier_that_is_three_times_too_sure() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4000, 4))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    wanted = np.array([rng.choice(4, p=row) for row in chances])
    assert fit_temperature(3 * scores, wanted) == pytest.approx(3, rel=0.1)
    assert fit_temperature(scores[:0], wanted[:0]) == 1.0


def test_the_log_loss_has_a_golden_value() -> None:
    assert log_loss(np.zeros((2, 4)), np.array([0, 3])) == pytest.approx(np.log(4))
    assert log_loss(np.zeros((1, 3)), np.array([[1, 0, 1]])) == pytest.approx(3 * np.log(2))


def test_a_perfect_classifier_keeps_a_finite_temperature() -> None:
    scores = np.eye(3)[np.arange(30) % 3] * 50
    assert 0.05 <= fit_temperature(scores, np.arange(30) % 3) <= 20
    few, right = np.eye(3), np.arange(3)  # three rows are little to believe in
    assert fit_temperature(few, right, pseudo=0.0) < 0.06 < 0.5 < fit_temperature(few, right) < 1.0


@pytest.mark.parametrize("counts", [(1, 1), (1, 5), (2, 2, 7), (10, 10)])
def test_each_fold_trains_on_every_class(counts: tuple[int, ...]) -> None:
    names = [f"{number}" for number, count in enumerate(counts) for _ in range(count)]
    labels = LabelSets.of(names)
    folds = labels.folds(5, np.random.default_rng(0))
    for fold in range(folds.max() + 1):
        assert set(labels.wanted[folds != fold]) == set(range(len(counts)))
        assert (folds == fold).any()


def test_one_row_a_class_is_fitted_and_not_calibrated() -> None:
    vectors, names = clouds(3, 3, 3.0)
    fitted = fit_head(vectors, LabelSets.of(names))
    assert fitted.measures == {}
    assert fitted.classifier.facts["calibration"] == "not calibrated"
    assert fitted.classifier.score(vectors, np.array(names)) == 1.0


def test_labels_that_stand_together_are_found_together() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    words = ["|".join(name for name, x in zip("abc", row, strict=False) if x > 0) for row in vectors]
    fitted = fit_head(vectors, LabelSets.of(words, multi_label=True))
    found = fitted.classifier.predict(vectors)
    assert found.shape == (300, 3)
    assert (found == (vectors[:, :3] > 0)).mean() > 0.97
    assert fitted.measures["micro_f1"] > 0.9
    assert fitted.classifier.predict_proba(vectors).sum(axis=1).max() > 1.5


def test_a_label_that_every_row_has_is_likely_everywhere() -> None:
    vectors, _ = clouds(20, 2, 1.0)
    classifier = fit_head(vectors, LabelSets.of(["always|a", "always"] * 10, multi_label=True)).classifier
    assert classifier.predict_proba(vectors)[:, list(classifier.names).index("always")].min() > 0.9


@pytest.mark.parametrize(("labels", "multi_label"), [(["a", "a"], False), (["", ""], True)])
def test_labels_that_teach_nothing_are_refused(labels: list[str], multi_label: bool) -> None:
    with pytest.raises(InputError, match="needs at least"):
        LabelSets.of(labels, multi_label)


def test_the_conventions_of_scikit_learn_hold() -> None:
    """Beside scikit-learn's own regression with the same weights."""
    for classes in (2, 4):
        vectors, names = clouds(80, classes, 0.5)
        theirs = LogisticRegression().fit(vectors, names)
        weight, bias = theirs.coef_, theirs.intercept_
        if classes == 2:
            weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
        ours = Classifier((Layer(weight, bias),), tuple(theirs.classes_))
        assert ours.classes_.tolist() == theirs.classes_.tolist()
        assert ours.n_features_in_ == theirs.n_features_in_
        np.testing.assert_allclose(ours.decision_function(vectors), theirs.decision_function(vectors), atol=1e-5)
        np.testing.assert_allclose(ours.predict_proba(vectors), theirs.predict_proba(vectors), atol=1e-6)
        assert (ours.predict(vectors) == theirs.predict(vectors)).all()
        assert ours.score(vectors, names) == theirs.score(vectors, names)


def test_vectors_of_another_width_are_refused() -> None:
    classifier = Classifier((Layer(np.zeros((2, 3)), np.zeros(2)),), ("a", "b"))
    with pytest.raises(InputError, match="takes vectors of 3 dimensions"):
        classifier.predict(np.zeros((1, 4)))


def test_copies_of_a_text_are_held_out_together() -> None:
    """Vectors say nothing of the class: a row that is held out while its copy is trained on would look well known."""
    rng = np.random.default_rng(5)
    distinct = rng.normal(size=(60, 40)).astype(np.float32)
    texts = [f"text {row % 60}" for row in range(240)]
    vectors, names = np.tile(distinct, (4, 1)), [f"class {row % 60 % 2}" for row in range(240)]
    knowing = fit_head(vectors, LabelSets.of(names), strength=1.0)
    honest = fit_head(vectors, LabelSets.of(names), strength=1.0, texts=texts)
    assert knowing.measures["accuracy"] > 0.9
    assert honest.measures["accuracy"] < 0.7
    assert honest.classifier.temperature > 1.5 * knowing.classifier.temperature
    for labels in (LabelSets.of(names), LabelSets.of(names, multi_label=True)):
        folds = labels.folds(5, np.random.default_rng(0), texts)
        assert all(len({*folds[row::60]}) == 1 for row in range(60))
        assert {*folds} == {0, 1, 2, 3, 4}


def test_a_text_of_two_classes_leaves_no_fold_without_a_class() -> None:
    names, texts = ["a", "b", "b", "a", "a", "c", "c"], ["x", "x", "x", "y", "z", "u", "v"]
    labels = LabelSets.of(names)
    folds = labels.folds(5, np.random.default_rng(0), texts)
    for fold in range(folds.max() + 1):
        assert set(labels.wanted[folds != fold]) == {0, 1, 2}


def test_the_printed_calibration_is_that_of_rows_which_the_temperature_does_not_know() -> None:
    """Against a loop: each fold is scored by the classifier and by the temperature of the others."""
    vectors, names = clouds(60, 3, 0.5)
    labels = LabelSets.of(names)
    fitted = fit_head(vectors, labels, strength=0.3, seed=1)
    folds = labels.folds(5, np.random.default_rng(1))
    inputs = (vectors - vectors.mean(axis=0)).astype(np.float64)
    inputs /= np.sqrt((inputs**2).mean())
    scores = np.zeros((60, 3))
    for fold in range(5):
        model = LogisticRegression(C=0.3, max_iter=300).fit(inputs[folds != fold], labels.wanted[folds != fold])
        scores[folds == fold] = model.decision_function(inputs[folds == fold])
    losses = np.concatenate(
        [
            row_losses(own / fit_temperature(scores[folds != fold], labels.wanted[folds != fold]), wanted)
            for fold in range(5)
            for own, wanted in [(scores[folds == fold], labels.wanted[folds == fold])]
        ]
    )
    assert fitted.measures["log_loss"] == pytest.approx(losses.mean(), abs=1e-3)
    assert fitted.classifier.temperature == pytest.approx(fit_temperature(scores, labels.wanted), rel=1e-2)
    assert fitted.measures["log_loss"] > log_loss(scores / fitted.classifier.temperature, labels.wanted) + 1e-4


def test_vectors_that_are_no_numbers_are_refused() -> None:
    vectors, names = clouds(20, 2, 1.0)
    vectors[3, 2] = np.nan
    with pytest.raises(InputError, match="1 of 20 vectors hold NaN or infinity, the first in row 3"):
        fit_head(vectors, LabelSets.of(names))


def test_texts_whose_vectors_are_no_numbers_get_no_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        predictions, "classifier_of", lambda _: Classifier((Layer(np.ones((2, 3)), np.ones(2)),), ("a", "b"))
    )
    monkeypatch.setattr(predictions, "vectors_of", lambda *_: np.full((1, 3), np.nan))
    with pytest.raises(InputError, match="NaN or infinite vectors for 1 of 1 texts, such as 'hello'"):
        predictions.predict_rows(None, [("hello",)], [1])  # type: ignore[arg-type]
