"""Transfer: many fits are those of scikit-learn, folds are fair, and the protocol is SentEval's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binom

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.evaluation import curvature
from isotrope.evaluation.folds import FOLDS, STRENGTHS, by_dev, by_folds, by_test, stratified
from isotrope.evaluation.linear import standardised
from isotrope.evaluation.logistic import fit_many
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.transfer import features_of
from isotrope.evaluation.transfer_tasks import TASKS, plain_brackets, read_task


def made(rows: int, classes: int, seed: int = 0, width: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of unequal spread, and classes that they predict in part."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, width)) * np.geomspace(1, 0.05, width)
    scores = vectors @ rng.normal(size=(width, classes)) * 3 + rng.gumbel(size=(rows, classes))
    return torch.from_numpy(vectors).float(), torch.from_numpy(scores.argmax(axis=1))


def shifted(vectors: torch.Tensor, kind: str) -> torch.Tensor:
    """The same vectors with a mean far from 0, or in dimensions of unlike scale."""
    width = vectors.shape[1]
    if kind == "uncentred":
        return vectors + torch.from_numpy(np.random.default_rng(7).normal(size=width) * 20).float()
    if kind == "badly scaled":
        return vectors * torch.from_numpy(np.geomspace(0.01, 100, width)).float() + 5
    return vectors


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("kind", ["centred", "uncentred", "badly scaled"])
@pytest.mark.parametrize("classes", [2, 4])
def test_each_of_many_fits_is_the_one_of_scikit_learn(classes: int, kind: str, standardise: bool) -> None:
    """scikit-learn is given what it needs to converge: rows that are centred, and a tolerance of 1e-12."""
    from sklearn.linear_model import LogisticRegression

    vectors, labels = made(300, classes)
    vectors = shifted(vectors, kind)
    parts = torch.stack([torch.arange(300) % 5 != fold for fold in range(5) for _ in range(3)], dim=1)
    strengths = torch.tensor([0.01, 0.3, 10.0] * 5)
    fits = fit_many(vectors, labels, parts, strengths, standardise)
    for number in (0, 1, 2, 14):
        chosen = parts[:, number].numpy()
        rows = vectors.double().numpy()[chosen]
        mean, spread = rows.mean(axis=0), rows.std(axis=0) if standardise else np.ones(rows.shape[1])
        solver = LogisticRegression(C=float(strengths[number]), tol=1e-12, max_iter=10_000, solver="newton-cholesky")
        twin = solver.fit((rows - mean) / spread, labels[chosen])
        weights, biases = fits.weights[:, number].T.numpy(), fits.biases[number].numpy()
        effect = rows.std(axis=0)  # a weight counts for what it moves
        assert np.allclose(
            weights * effect, twin.coef_ / spread * effect, atol=1e-4 * np.abs(twin.coef_ * effect).max()
        )
        scores, wanted = (
            centred_scores(each, classes)
            for each in (rows @ weights.T + biases, twin.decision_function((rows - mean) / spread))
        )
        assert np.allclose(scores, wanted, atol=1e-4 * np.abs(wanted).max())
        assert (fits.classes(vectors)[chosen, number].numpy() == twin.predict((rows - mean) / spread)).all()


def centred_scores(scores: np.ndarray, classes: int) -> np.ndarray:
    """Scores of several classes are the same up to a constant for each row."""
    scores = scores.reshape(len(scores), -1)
    return scores - scores.mean(axis=1, keepdims=True) if classes > 2 else scores


def test_many_classes_end_at_the_same_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the curvature of all classes together would be too large, each class has its own."""
    vectors, labels = made(300, 4)
    parts, strengths = torch.ones(300, 2, dtype=torch.bool), torch.tensor([0.1, 10.0])
    whole = fit_many(vectors, labels, parts, strengths)
    monkeypatch.setattr("isotrope.evaluation.curvature.LARGEST", 20)
    each = fit_many(vectors, labels, parts, strengths)
    assert torch.allclose(whole.weights, each.weights, atol=1e-4 * float(whole.weights.abs().max()))


@pytest.mark.parametrize("classes", [2, 4])
def test_a_search_that_leaves_the_numbers_is_made_again_and_never_scored(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that are NaN predict the first class of all: a score that looks like one and is none."""
    vectors, labels = made(300, classes)
    parts, strengths = torch.ones(300, 2, dtype=torch.bool), torch.tensor([0.3, 10.0])
    whole = fit_many(vectors, labels, parts, strengths)
    monkeypatch.setattr(curvature, "_root", lambda matrix: torch.full_like(matrix, torch.nan))
    again = fit_many(vectors, labels, parts, strengths)
    torch.testing.assert_close(again.weights, whole.weights, rtol=1e-3, atol=1e-4)
    with pytest.raises(InputError, match="does not converge"):
        fit_many(vectors * torch.inf, labels, parts, strengths)


@pytest.mark.parametrize("way", ["folds", "test"])
def test_the_judged_rows_do_not_standardise(way: str) -> None:
    """A fold whose vectors are moved and stretched changes no fit that is judged on it."""
    vectors, labels = made(200, 2, seed=2)
    folds = torch.from_numpy(stratified(labels.numpy(), np.random.default_rng(5)))
    inside = ~(folds == 3)[:, None]
    first = fit_many(vectors, labels, inside, torch.tensor([0.1]), standardise=True)
    moved = torch.where(inside, vectors, 50 * vectors + 9)
    second = fit_many(moved, labels, inside, torch.tensor([0.1]), standardise=True)
    assert torch.allclose(first.weights, second.weights, atol=1e-4)
    if way == "folds":
        found = by_folds(moved, labels, np.random.default_rng(5), standardise=True)
        fit = fit_many(moved, labels, inside, torch.tensor([found.strengths[3]]), standardise=True)
        assert torch.equal(found.found[folds == 3], fit.classes(moved)[folds == 3, 0])
        assert found.strengths[3] == by_folds(vectors, labels, np.random.default_rng(5), standardise=True).strengths[3]
    else:
        learn = (vectors[:150], labels[:150])
        one, other = (
            by_test(*learn, judged, labels[150:], np.random.default_rng(0), standardise=True)
            for judged in (vectors[150:], 50 * vectors[150:])
        )
        assert one.strengths == other.strengths


def test_a_dimension_that_does_not_vary_in_a_part_is_not_used() -> None:
    vectors, labels = made(200, 2)
    vectors[:150, 4] = 0.7
    part = (torch.arange(200) < 150)[:, None]
    fits = fit_many(vectors, labels, part, torch.tensor([1.0]), standardise=True)
    assert float(fits.weights[4].abs().max()) == 0
    assert float(fits.weights[5].abs().max()) > 0


def test_the_two_files_of_sst_are_read_in_one_tokenisation(shared_data: Path) -> None:
    """Nearly every training sentence is among the phrases; with the brackets as they come 380 of 6,920 are not."""
    folder = shared_data / "transfer"
    phrases, sentences = (
        read_task(folder / f"{name}.tsv.gz", "SST2").texts[0] for name in ("sst2.phrases.train", "sst2.train")
    )
    assert len(set(sentences) - set(phrases)) <= 40
    assert not any("-lrb-" in text or "\\/" in text for text in sentences)


def test_brackets_of_the_treebank_are_plain() -> None:
    assert plain_brackets(r"-lrb- a -RRB- -lsb- b -rsb- and\/or f \* ck") == "( a ) [ b ] and/or f * ck"
    assert plain_brackets("the lrb- of a-lrb") == "the lrb- of a-lrb"


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


@pytest.mark.parametrize("seed", [1, 3, 5, 9])
def test_with_a_test_part_the_penalty_is_that_of_a_slow_loop_over_stratified_folds(seed: int) -> None:
    vectors, labels = made(120, 3, seed=seed)
    found = by_test(vectors[:90], labels[:90], vectors[90:], labels[90:], np.random.default_rng(seed))
    folds = torch.from_numpy(stratified(labels[:90].numpy(), np.random.default_rng(seed)))
    shares = []
    for strength in STRENGTHS:
        right = []
        for fold in range(FOLDS):
            fit = fit_many(vectors[:90], labels[:90], (folds != fold)[:, None], torch.tensor([strength]))
            right.append(float((fit.classes(vectors[:90])[:, 0] == labels[:90])[folds == fold].float().mean()))
        shares.append(np.mean(right))
    best = STRENGTHS[int(np.argmax(np.round(shares, 6)))]
    assert found.strengths == [best]
    whole = fit_many(vectors[:90], labels[:90], torch.ones(90, 1, dtype=torch.bool), torch.tensor([best]))
    assert torch.equal(found.found, whole.classes(vectors[90:])[:, 0])


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
    assert first.protocol["protocol"] == "transfer-logistic-v2"
    assert first.protocol["SST2 trained on"] == "sst2.train"
    assert first.protocol["interval"] == "95 %, binomial over the judged texts; of the average normal"
    texts, hits = scores["MR"]["texts"], scores["MR"]["accuracy"] / 100
    assert scores["MR"]["low"] == pytest.approx(100 * binom.ppf(0.025, texts, hits) / texts)
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
    assert "judged by transfer-logistic-v2" in found.table()
    with pytest.raises(InputError, match="needs its benchmarks"):
        isotrope.compare(sentences, "simcse", tmp_path / "other", suite="transfer", **loop)
    with pytest.raises(InputError, match="comparison 'transfr'; did you mean 'transfer'"):
        isotrope.compare(sentences, "simcse", tmp_path / "other", suite="transfr", **loop)
