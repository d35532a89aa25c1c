"""SentEval's protocol: the batched classifiers are those of a plain loop, written from the published protocol."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from isotrope.errors import InputError
from isotrope.evaluation import relatedness, transfer_protocols
from isotrope.evaluation.folds import Outcome
from isotrope.evaluation.linear import Labelled
from isotrope.evaluation.relatedness import predict_scores, related, soft_bins
from isotrope.evaluation.same_batches import have_same_batches
from isotrope.evaluation.scored_pairs import ScoredPairs
from isotrope.evaluation.senteval_classifier import Problem, Trained, Training, train_many
from isotrope.evaluation.senteval_folds import _best, judge_as_senteval, senteval_order, stratified_folds
from isotrope.evaluation.transfer_protocols import PROTOCOLS, find_protocol

FOLDS = 3
SHORT = {"tenacity": 2, "epoch_size": 2, "max_epoch": 12}


def made(rows: int, classes: int, seed: int = 0, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, width)) * np.geomspace(2, 0.2, width)
    scores = vectors @ rng.normal(size=(width, classes)) * 2 + rng.gumbel(size=(rows, classes))
    return vectors, scores.argmax(axis=1)


def test_the_smallest_of_equal_penalties_is_taken_after_rounding_to_two_digits() -> None:
    """In per cent: 80.001 and 80.004 are 80.00 both."""
    assert _best(np.array([[0.80001], [0.80004], [0.8]]), (1e-5, 1e-4, 1e-3)) == 1e-5
    assert _best(np.array([[0.80001], [0.80006], [0.8]]), (1e-5, 1e-4, 1e-3)) == 1e-4


def test_the_regressor_stops_at_the_fourth_round_that_is_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in all, not in a row; the predictions are those of the best round."""
    rounds = iter([0.1, 0.1, 0.5, 0.4, 0.3, 0.2, 0.9, 0.9])
    asked = []
    monkeypatch.setattr(relatedness, "PASSES", 1)
    monkeypatch.setattr(relatedness, "pearson", lambda *_: asked.append(next(rounds)) or asked[-1])
    vectors = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    predict_scores([vectors, vectors, vectors], np.linspace(1, 5, 40), np.linspace(1, 5, 40), Training())
    assert asked == [0.1, 0.1, 0.5, 0.4, 0.3, 0.2]


class PlainLoop:
    """The classifier of SentEval, one at a time, with PyTorch's own layers, loss, optimiser and gradients."""

    def __init__(self, width: int, classes: int, penalty: float, hidden: int = 0) -> None:
        self.orders = np.random.RandomState(1111)
        torch.manual_seed(1111)
        layers: list[nn.Module] = [nn.Linear(width, hidden or classes)]
        if hidden:
            layers += [nn.Dropout(0.0), nn.Sigmoid(), nn.Linear(hidden, classes)]
        self.model = nn.Sequential(*layers).double()
        self.optimiser = torch.optim.Adam(self.model.parameters(), weight_decay=penalty)

    def fit(self, x: np.ndarray, y: np.ndarray, dev: tuple[np.ndarray, np.ndarray] | None = None) -> float:
        if dev is None:
            order = self.orders.permutation(len(x))
            held, rest = order[: int(0.05 * len(x))], order[int(0.05 * len(x)) :]
            x, y, dev = x[rest], y[rest], (x[held], y[held])
        best, bad, passes, stop = -1.0, 0, 0, False
        while not stop and passes <= SHORT["max_epoch"]:
            for _ in range(SHORT["epoch_size"]):
                order = self.orders.permutation(len(x))
                for start in range(0, len(x), 64):
                    rows = order[start : start + 64]
                    loss = nn.functional.cross_entropy(self.model(torch.from_numpy(x[rows])), torch.from_numpy(y[rows]))
                    self.optimiser.zero_grad()
                    loss.backward()
                    self.optimiser.step()
            passes += SHORT["epoch_size"]
            found = self.score(*dev)
            if found > best:
                best, kept = found, copy.deepcopy(self.model)
            else:
                stop = bad >= SHORT["tenacity"]
                bad += 1
        self.model = kept
        return best

    def predict(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.model(torch.from_numpy(x)).argmax(dim=1).numpy()

    def score(self, x: np.ndarray, y: np.ndarray) -> float:
        return float((self.predict(x) == y).mean())


def searched(x: np.ndarray, y: np.ndarray, classes: int, hidden: int) -> float:
    """The weight decay that inner folds choose."""
    from sklearn.model_selection import StratifiedKFold

    grid = [10.0**power for power in range(-5, -1)]
    means = []
    for penalty in grid:
        found = []
        for learn, dev in StratifiedKFold(FOLDS, shuffle=True, random_state=1111).split(x, y):
            clf = PlainLoop(x.shape[1], classes, penalty, hidden)
            found.append(clf.fit(x[learn], y[learn], (x[dev], y[dev])))
        means.append(round(100 * np.mean(found), 2))
    return grid[int(np.argmax(means))]


def nested(x: np.ndarray, y: np.ndarray, classes: int, hidden: int) -> tuple[float, list[float], np.ndarray]:
    from sklearn.model_selection import StratifiedKFold

    accuracies, chosen, predicted = [], [], np.empty_like(y)
    for learn, judged in StratifiedKFold(FOLDS, shuffle=True, random_state=1111).split(x, y):
        chosen.append(searched(x[learn], y[learn], classes, hidden))
        clf = PlainLoop(x.shape[1], classes, chosen[-1], hidden)
        clf.fit(x[learn], y[learn])
        predicted[judged] = clf.predict(x[judged])
        accuracies.append(float((predicted[judged] == y[judged]).mean()))
    return float(np.mean(accuracies)), chosen, predicted


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


@pytest.mark.parametrize(("classes", "hidden"), [(2, 0), (3, 0), (2, 5)])
def test_nested_folds_are_those_of_a_plain_loop(classes: int, hidden: int) -> None:
    """Same seed, double precision: the same λ, the same prediction of every row, the same accuracy."""
    x, y = made(200, classes)
    found = judge_as_senteval(*([side] for side in tensors(x, y)), Training(hidden=hidden, **SHORT), folds=FOLDS)
    accuracy, chosen, predicted = nested(x, y, classes, hidden)
    assert found.strengths == pytest.approx(chosen)
    assert found.found.tolist() == predicted.tolist()
    assert found.accuracy == pytest.approx(accuracy, abs=1e-12)


def test_folds_and_a_test_part_are_those_of_a_plain_loop() -> None:
    x, y = made(260, 3, seed=1)
    found = judge_as_senteval(tensors(x[:200], x[200:]), tensors(y[:200], y[200:]), Training(**SHORT), folds=FOLDS)
    penalty = searched(x[:200], y[:200], 3, 0)
    clf = PlainLoop(6, 3, penalty)
    clf.fit(x[:200], y[:200])
    assert found.strengths == [pytest.approx(penalty)]
    assert found.found.tolist() == clf.predict(x[200:]).tolist()


def test_train_dev_and_test_are_those_of_a_plain_loop() -> None:
    x, y = made(300, 2, seed=2)
    cut = [slice(0, 150), slice(150, 220), slice(220, 300)]
    found = judge_as_senteval(tensors(*(x[c] for c in cut)), tensors(*(y[c] for c in cut)), Training(**SHORT))
    fits = []
    for penalty in (1e-5, 1e-4, 1e-3, 1e-2):
        clf = PlainLoop(6, 2, penalty)
        fits.append((round(100 * clf.fit(x[cut[0]], y[cut[0]], (x[cut[1]], y[cut[1]])), 2), penalty, clf))
    _, penalty, best = max(fits, key=lambda each: each[0])  # the first of equals
    assert found.strengths == [penalty]
    assert found.found.tolist() == best.predict(x[cut[2]]).tolist()
    assert found.accuracy == pytest.approx(best.score(x[cut[2]], y[cut[2]]))


def test_classifiers_of_unlike_size_do_not_disturb_each_other() -> None:
    """One alone, and in a stack with others of more and fewer rows: the same weights."""
    x, y = tensors(*made(200, 2))
    sizes = (64, 65, 100, 127, 128)
    problems = lambda: [  # noqa: E731 - the orders are used up
        Problem(np.arange(size), np.arange(150, 200), 1e-3, np.random.RandomState(1111)) for size in sizes
    ]
    together = train_many(x, y, problems(), Training(**SHORT), 2)
    for alone, stacked in zip(problems(), together, strict=True):
        single = train_many(x, y, [alone], Training(**SHORT), 2)[0]
        assert torch.allclose(single.layers[0], stacked.layers[0], atol=1e-10)
        assert single.right == stacked.right


def test_the_random_state_of_the_caller_is_left_alone() -> None:
    x, y = tensors(*made(120, 2))
    torch.manual_seed(3)
    before = torch.get_rng_state()
    judge_as_senteval([x], [y], Training(**SHORT), folds=FOLDS)
    assert torch.equal(before, torch.get_rng_state())


def test_degenerate_vectors_give_the_commonest_class_or_chance() -> None:
    x, y = made(300, 2)
    y = (np.arange(300) % 3 == 0).astype(np.int64)  # two thirds are 0
    flat = judge_as_senteval([torch.full((300, 6), 0.3)], tensors(y), Training(**SHORT), folds=FOLDS)
    assert flat.accuracy == pytest.approx(2 / 3, abs=0.01)
    shuffled = judge_as_senteval([torch.from_numpy(x)], tensors(y), Training(**SHORT), folds=FOLDS)
    assert shuffled.accuracy < 0.75
    with pytest.raises(InputError, match="too few for 10 folds"):
        stratified_folds(np.array([0, 1] * 4), 10, 0)


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_a_protocol_judges_in_the_order_of_the_data_and_refuses_what_is_no_number(name: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = rng.normal(size=(120, 6)) + 4 * y[:, None]
    texts = [" ".join(["word"] * int(count)) for count in rng.integers(1, 9, size=120)]
    part = Labelled((texts,), [str(label) for label in y])
    outcome = PROTOCOLS[name].outcomes("MR", [part], [torch.from_numpy(x).float()], (0,))[0]
    assert outcome.wanted.tolist() == y.tolist()
    assert float((outcome.found == outcome.wanted).double().mean()) == pytest.approx(outcome.accuracy, abs=0.02)
    assert outcome.accuracy > 0.7
    x[3, 2] = np.nan
    with pytest.raises(InputError, match="NaN or infinity"):
        PROTOCOLS[name].outcomes("MR", [part], [torch.from_numpy(x).float()], (0,))
    with pytest.raises(InputError, match="at least two classes"):
        PROTOCOLS[name].outcomes("MR", [Labelled((texts,), ["1"] * 120)], [torch.ones(120, 2)], (0,))


def test_a_protocol_is_found_by_its_name_with_or_without_version() -> None:
    assert find_protocol("senteval") is find_protocol("senteval-v1") is PROTOCOLS["senteval"]
    assert find_protocol(None).name == "transfer-logistic-v2"
    with pytest.raises(InputError, match="Unknown protocol 'sentevall'; did you mean 'senteval'"):
        find_protocol("sentevall")
    words = find_protocol("senteval").words((0,))
    assert "seed 1111" in words["folds"]
    assert "seeds 1, 2" in find_protocol("senteval").words((1, 2))["folds"]


def test_snli_has_fewer_passes_and_no_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, tuple[Training, Any]] = {}

    def judged(features: Any, labels: Any, training: Training, penalties: Any) -> Outcome:
        seen[str(len(seen))] = training, penalties
        return Outcome(0.5, labels[-1], labels[-1], [0.0])

    monkeypatch.setattr(transfer_protocols, "judge_as_senteval", judged)
    part = Labelled((["a", "b"], ["c", "d"]), ["0", "1"])
    for task in ("SNLI", "MRPC"):
        PROTOCOLS["senteval"].outcomes(task, [part] * 3, [torch.eye(2)] * 3, (0,))
    assert seen["0"] == (Training(epoch_size=1, max_epoch=15), (1e-9,))
    assert seen["1"] == (Training(), (1e-5, 1e-4, 1e-3, 1e-2))
    assert Training() == Training(0, batch=64, tenacity=5, epoch_size=4, max_epoch=200, seed=1111)


def test_rows_are_put_in_order_of_length_then_label() -> None:
    part = Labelled((["c d", "a", "b", "a b c"], ["x", "y z", "y", "x"]), ["1", "1", "0", "0"])
    assert senteval_order(part).tolist() == [2, 1, 0, 3]


def test_soft_bins_are_those_of_the_specification() -> None:
    assert soft_bins(np.array([3.4]))[0].tolist() == pytest.approx([0, 0, 0.6, 0.4, 0])
    scores = np.array([1.0, 1.25, 2.0, 3.4, 4.9, 5.0])
    assert (soft_bins(scores) @ np.arange(1, 6)).tolist() == pytest.approx(scores.tolist())
    assert soft_bins(np.array([0.0, 0.4])).sum(axis=1).tolist() == pytest.approx([0, 0.4])  # as published


def plain_regressor(x: list[np.ndarray], train: np.ndarray, dev: np.ndarray) -> np.ndarray:
    """SentEval's relatedness, written as a loop."""
    from scipy.stats import pearsonr

    torch.manual_seed(1111)
    orders = np.random.RandomState(1111)
    model: Any = nn.Sequential(nn.Linear(x[0].shape[1], 5), nn.Softmax(dim=-1)).double()
    optimiser = torch.optim.Adam(model.parameters())
    targets = np.zeros((len(train), 5))
    for row, y in enumerate(train):
        for i in range(5):
            if i + 1 == np.floor(y) + 1:
                targets[row, i] = y - np.floor(y)
            if i + 1 == np.floor(y):
                targets[row, i] = np.floor(y) - y + 1
    scale = np.arange(1, 6)

    def predicted(rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model(torch.from_numpy(rows)).numpy() @ scale

    best, bad, passes, stop = -1.0, 0, 0, False
    while not stop and passes <= 1000:
        for _ in range(50):
            order = orders.permutation(len(train))
            for start in range(0, len(train), 64):
                rows = order[start : start + 64]
                loss = nn.functional.mse_loss(model(torch.from_numpy(x[0][rows])), torch.from_numpy(targets[rows]))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        passes += 50
        found = pearsonr(predicted(x[1]), dev)[0]
        if found > best:
            best, kept = found, predicted(x[2])
        else:
            stop = bad >= 3
            bad += 1
    return kept


def test_the_regressor_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 6))
    y = np.clip(3 + x @ rng.normal(size=6) * 0.7 + rng.normal(size=160) * 0.3, 1, 5)
    parts = [x[:64], x[64:110], x[110:]]
    found = predict_scores(tensors(*parts), y[:64], y[64:110], Training())
    assert found.tolist() == pytest.approx(plain_regressor(parts, y[:64], y[64:110]).tolist(), abs=1e-6)
    pairs = ScoredPairs(["a"] * 50, ["b"] * 50, y[110:], [""] * 50)
    score = related(found, pairs, 0, 100)
    assert score.spearman > 60
    assert score.low < score.spearman < score.high
    constant = related(np.full(50, 2.0), pairs, 0, 100)
    assert constant.spearman == constant.pearson == 0


def test_classifiers_with_the_same_batches_are_those_of_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where λ alone differs all take the same batches; the stack, which gathers each on its own, finds the same."""
    rng = np.random.default_rng(3)
    labels = torch.from_numpy(rng.integers(0, 3, 330))
    features = torch.from_numpy(rng.normal(size=(330, 7))).float() + labels[:, None] * 0.4
    learn, dev = np.arange(250), np.arange(250, 330)
    training = Training(tenacity=1, epoch_size=2, max_epoch=20)

    def found() -> list[Trained]:
        penalties = (1e-5, 1e-2, 0.3)
        problems = [Problem(learn, dev, penalty, np.random.RandomState(5)) for penalty in penalties]
        return train_many(features, labels, problems, training, 3)

    together = found()
    monkeypatch.setattr("isotrope.evaluation.same_batches.have_same_batches", lambda problems: False)
    for one, other in zip(together, found(), strict=True):
        assert one.right == other.right
        assert torch.allclose(one.layers[0], other.layers[0], atol=1e-5)


def test_other_rows_or_orders_are_no_same_batches() -> None:
    rows = np.arange(20)

    def problem(learn: np.ndarray, seed: int) -> Problem:
        return Problem(learn, rows, 1e-3, np.random.RandomState(seed))

    assert have_same_batches([problem(rows, 1), problem(rows, 1)])
    assert not have_same_batches([problem(rows, 1), problem(rows, 2)])
    assert not have_same_batches([problem(rows, 1), problem(rows[::-1], 1)])
