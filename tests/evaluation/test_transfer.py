"""Transfer: many fits are those of scikit-learn, folds are fair, and the protocol is SentEval's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.evaluation.folds import FOLDS, STRENGTHS, by_dev, by_folds, by_test, stratified
from isotrope.evaluation.linear import standardised
from isotrope.evaluation.logistic import fit_many
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.transfer import TASKS, features_of


def made(rows: int, classes: int, seed: int = 0, width: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of unequal spread, and classes that they predict in part."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, width)) * np.geomspace(1, 0.05, width)
    scores = vectors @ rng.normal(size=(width, classes)) * 3 + rng.gumbel(size=(rows, classes))
    return torch.from_numpy(vectors).float(), torch.from_numpy(scores.argmax(axis=1))


@pytest.mark.parametrize("classes", [2, 4])
def test_each_of_many_fits_is_the_one_of_scikit_learn(classes: int) -> None:
    from sklearn.linear_model import LogisticRegression

    vectors, labels = made(300, classes)
    parts = torch.stack([torch.arange(300) % 5 != fold for fold in range(5) for _ in range(3)], dim=1)
    strengths = torch.tensor([0.01, 0.3, 10.0] * 5)
    fits = fit_many(vectors, labels, parts, strengths)
    for number in (0, 1, 2, 14):
        chosen = parts[:, number].numpy()
        twin = LogisticRegression(C=float(strengths[number]), tol=1e-8, max_iter=10_000).fit(
            vectors[chosen], labels[chosen]
        )
        weights, biases = fits.weights[:, number].T.numpy(), fits.biases[number].numpy()
        assert np.allclose(weights, twin.coef_, atol=0.02 * np.abs(twin.coef_).max())
        assert np.allclose(
            biases - biases.mean() * (classes > 2), twin.intercept_ - twin.intercept_.mean() * (classes > 2), atol=0.02
        )
        assert (fits.classes(vectors)[:, number].numpy() == twin.predict(vectors)).mean() > 0.99


def test_rows_that_a_fit_has_not_do_not_move_it() -> None:
    vectors, labels = made(200, 2)
    part = (torch.arange(200) < 150)[:, None]
    other = labels.clone()
    other[150:] = 1 - other[150:]
    first, second = (fit_many(vectors, each, part, torch.tensor([1.0])) for each in (labels, other))
    assert torch.equal(first.weights, second.weights)


def test_each_class_is_dealt_out_evenly() -> None:
    labels = np.repeat([0, 1, 2], [101, 57, 33])
    folds = stratified(labels, np.random.default_rng(0))
    table = np.array([[(folds[labels == label] == fold).sum() for fold in range(FOLDS)] for label in range(3)])
    assert (table.max(axis=1) - table.min(axis=1) <= 1).all()
    assert np.ptp(table.sum(axis=0)) <= 1
    assert not np.array_equal(folds, stratified(labels, np.random.default_rng(1)))
    assert np.array_equal(folds, stratified(labels, np.random.default_rng(0)))


def test_nested_folds_are_those_of_a_slow_loop() -> None:
    """C of a fold by the mean over the nine others, each judged by a fit without both."""
    vectors, labels = made(150, 2, seed=3)
    found = by_folds(vectors, labels, np.random.default_rng(5))
    folds = torch.from_numpy(stratified(labels.numpy(), np.random.default_rng(5)))
    right = []
    for fold in range(3):
        shares = []
        for strength in STRENGTHS:
            parts = torch.stack([(folds != fold) & (folds != other) for other in range(FOLDS) if other != fold], dim=1)
            fits = fit_many(vectors, labels, parts, torch.full((9,), strength)).classes(vectors)
            others = [other for other in range(FOLDS) if other != fold]
            shares.append(
                np.mean(
                    [float((fits[folds == o, i] == labels[folds == o]).float().mean()) for i, o in enumerate(others)]
                )
            )
        best = STRENGTHS[int(np.argmax(shares))]
        assert found.strengths[fold] == best
        whole = fit_many(vectors, labels, (folds != fold)[:, None], torch.tensor([best])).classes(vectors)[:, 0]
        right.append(float((whole == labels)[folds == fold].float().mean()))
        assert float((found.found == labels)[folds == fold].float().mean()) == pytest.approx(right[-1])
    assert len(found.found) == 150


def test_shuffled_labels_give_chance_and_constant_vectors_the_commonest_class() -> None:
    vectors, labels = made(400, 2)
    shuffled = labels[torch.from_numpy(np.random.default_rng(1).permutation(400))]
    commonest = float(labels.bincount().max()) / 400
    assert abs(by_folds(vectors, shuffled, np.random.default_rng(0)).accuracy - commonest) < 0.1
    assert by_folds(vectors, labels, np.random.default_rng(0)).accuracy > commonest + 0.2
    flat = standardised(torch.full((400, 12), 0.3), 400)
    assert (flat == 0).all()
    assert by_folds(flat, labels, np.random.default_rng(0)).accuracy == pytest.approx(commonest, abs=0.02)


def test_a_rotation_changes_next_to_nothing() -> None:
    vectors, labels = made(400, 2)
    turn = torch.linalg.qr(torch.randn(12, 12, generator=torch.Generator().manual_seed(0))).Q
    first, second = (by_folds(each, labels, np.random.default_rng(0)).accuracy for each in (vectors, vectors @ turn))
    assert first == pytest.approx(second, abs=0.01)


def test_the_test_part_chooses_nothing() -> None:
    vectors, labels = made(300, 3)
    learn, judge = (vectors[:200], labels[:200]), (vectors[200:], labels[200:])
    first = by_test(*learn, *judge, np.random.default_rng(0))
    wrong = by_test(*learn, judge[0], (judge[1] + 1) % 3, np.random.default_rng(0))
    assert torch.equal(first.found, wrong.found)
    assert first.accuracy > 0.6
    by = by_dev(*learn, *judge, judge[0], (judge[1] + 1) % 3)
    assert by.strengths == by_dev(*learn, *judge, *judge).strengths


def test_the_features_of_a_pair() -> None:
    vectors = TextVectors(["a", "b"], np.array([[1, -2], [3, 4]], dtype=np.float32))
    assert features_of(vectors, (["a", "b"], ["b", "b"])).tolist() == [[2, 6, 3, -8], [0, 0, 9, 16]]
    assert features_of(vectors, (["b"],)).tolist() == [[3, 4]]


@pytest.fixture(scope="module")
def benchmark_folder(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    folder = tmp_path_factory.mktemp("data") / "transfer"
    folder.mkdir()
    starts = iter(range(0, 1200, 60))
    for task, parts in TASKS.items():
        for names in parts:
            start = next(starts)
            texts = topics[start : start + 60]
            rows = [
                f"{(row // 8) % 2}\t{text}" + f"\t{texts[row - 1]}" * (task == "MRPC") for row, text in enumerate(texts)
            ]
            header = "label\tsentence1\tsentence2" if task == "MRPC" else "label\tsentence"
            (folder / f"{names[-1]}.tsv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return folder.parent


def test_the_suite_says_its_protocol_and_repeats_itself(
    tiny: Path, benchmark_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = isotrope.load(tiny)
    before = encoder.fingerprint()
    first, again = (isotrope.evaluate(encoder, "transfer", benchmark_folder) for _ in range(2))
    assert first.scores == again.scores
    assert encoder.fingerprint() == before
    scores = first.scores["transfer"]
    assert list(scores) == [*TASKS, "average"]
    average = scores["average"]
    assert average["accuracy"] == pytest.approx(np.mean([scores[task]["accuracy"] for task in TASKS]))
    assert average["high"] - average["low"] < np.mean(
        [scores[task]["high"] - scores[task]["low"] for task in TASKS]
    )  # tasks err apart
    assert average["low"] < average["accuracy"] < average["high"]
    assert all(scores[task]["low"] <= scores[task]["accuracy"] <= scores[task]["high"] for task in TASKS)
    assert [task for task in TASKS if "f1" in scores[task]] == ["MRPC"]
    assert first.protocol["protocol"] == "transfer-logistic-v1"
    assert first.protocol["SST2 trained on"] == "sst2.train"
    three = isotrope.evaluate(encoder, "transfer", benchmark_folder, seeds=[0, 1, 2]).scores["transfer"]
    assert "deviation" in three["MR"]
    assert "deviation" not in three["SST2"]  # nothing is drawn at random
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "evaluate",
                str(tiny),
                "--suite",
                "transfer",
                "--data-dir",
                str(benchmark_folder),
                "--json",
                str(tmp_path / "out.json"),
            ]
        )
    assert stop.value.code == 0
    assert "average of seven" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["scores"]["transfer"] == scores


def test_a_missing_task_is_one_sentence(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "transfer").mkdir()
    with pytest.raises(InputError, match=r"mr\.tsv\.gz is missing"):
        isotrope.evaluate(tiny, "transfer", tmp_path)


def test_a_comparison_can_be_judged_by_transfer(
    tiny: Path, benchmark_folder: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    loop = {
        "max_steps": 2,
        "eval_steps": 2,
        "batch_size": 16,
        "held_out": 40,
        "max_length": 24,
        "seeds": 1,
        "model": tiny,
    }
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", suite="transfer", data_dir=benchmark_folder, **loop)
    start, row = found.rows()
    assert list(row.measures)[:2] == ["transfer_average", "transfer_mr"]
    expected = isotrope.evaluate(tiny, "transfer", benchmark_folder).scores["transfer"]
    assert start.measures["transfer_average"] == [pytest.approx(expected["average"]["accuracy"], abs=0.01)]
    assert "judged by transfer-logistic-v1" in found.table()
    with pytest.raises(InputError, match="needs its benchmarks"):
        isotrope.compare(sentences, "simcse", tmp_path / "other", suite="transfer", **loop)
    with pytest.raises(InputError, match="comparison 'transfr'; did you mean 'transfer'"):
        isotrope.compare(sentences, "simcse", tmp_path / "other", suite="transfr", **loop)
