"""The judge: aggregations by hand, intervals, geometry, and agreement with sentence-transformers + scipy."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.scored_pairs import POSITIVE_ABOVE, ScoredPairs
from isotrope.evaluation.sts import TASKS
from isotrope.evaluation.sts_scores import bootstrap, correlate
from isotrope.measures.intervals import percentile_interval


def write(folder: Path, name: str, rows: list[tuple[str, str, str, float]]) -> None:
    (folder / "sts").mkdir(exist_ok=True)
    lines = ["subset\tsentence1\tsentence2\tscore", *("\t".join(map(str, row)) for row in rows)]
    with gzip.open(folder / "sts" / f"{name}.tsv.gz", "wt", encoding="utf-8") as target:
        target.write("\n".join(lines) + "\n")


def test_positive_pairs_score_above_four() -> None:
    pairs = ScoredPairs(["a", "b", "c"], ["x", "y", "z"], np.array([4.0, 4.2, 3.9]), [""] * 3)
    assert pairs.above(POSITIVE_ABOVE) == [("b", "y")]


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """Seven small tasks in the layout of the data folder."""
    rng = np.random.default_rng(0)
    words = "chef sailor pianist farmer pilot bread boat sonata roses rocket".split()
    for name in [*TASKS.values(), "stsb.dev", "stsb.train"]:
        rows = []
        for i in range(40):
            a, b = (" ".join(rng.choice(words, 5)) + f' "{i}' for _ in range(2))
            rows.append(
                (f"part{i % 2}", a, a if i % 5 == 0 else b, 5.0 if i % 5 == 0 else round(float(rng.uniform(0, 4)), 2))
            )
        write(tmp_path, name, rows)
    return tmp_path


def test_the_three_aggregations_by_hand() -> None:
    rng = np.random.default_rng(0)
    predicted, gold = rng.normal(size=30), rng.normal(size=30)
    subsets = ["a"] * 20 + ["b"] * 10
    first, second = (
        stats.spearmanr(predicted[:20], gold[:20]).statistic,
        stats.spearmanr(predicted[20:], gold[20:]).statistic,
    )
    assert correlate("spearman", predicted, gold, subsets, "all") == pytest.approx(
        stats.spearmanr(predicted, gold).statistic
    )
    assert correlate("spearman", predicted, gold, subsets, "mean") == pytest.approx((first + second) / 2)
    assert correlate("spearman", predicted, gold, subsets, "wmean") == pytest.approx((2 * first + second) / 3)
    assert correlate("pearson", predicted, gold, subsets, "all") == pytest.approx(
        stats.pearsonr(predicted, gold).statistic
    )


def test_the_interval_holds_the_score_and_narrows_with_more_pairs() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for count in (50, 2000):
        gold = rng.normal(size=count)
        predicted = gold + rng.normal(size=count)
        low, high = percentile_interval(bootstrap(predicted, gold, [""] * count, "all", np.random.default_rng(1), 300))
        assert low < stats.spearmanr(predicted, gold).statistic < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 3


def test_every_table_names_its_aggregation_and_protocol(tiny: Path, made_up: Path, tmp_path: Path) -> None:
    for aggregation in ("all", "mean", "wmean"):
        results = isotrope.evaluate(isotrope.load(tiny), data_dir=made_up, aggregation=aggregation)
        assert f"({aggregation})" in results.table()
        assert results.protocol["aggregation"] == aggregation
        assert results.protocol["pooling"] == "mean"
        scores = results.scores["sts"]
        average = scores["average"]
        assert average["spearman"] == pytest.approx(np.mean([scores[task]["spearman"] for task in TASKS]))
        assert average["low"] < average["spearman"] < average["high"]
        widths = [scores[task]["high"] - scores[task]["low"] for task in TASKS]
        assert average["high"] - average["low"] < np.mean(widths)  # tasks err apart
    results.to_json(tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["protocol"]["protocol"] == "sts-cosine-v1"


def test_alignment_and_uniformity_follow_the_definition_on_stsb(tiny: Path, made_up: Path) -> None:
    encoder = isotrope.load(tiny)
    found = isotrope.evaluate(encoder, data_dir=made_up).scores["sts"]["geometry"]
    rows = []
    for split in ("train", "dev", "test"):
        with gzip.open(made_up / "sts" / f"stsb.{split}.tsv.gz", "rt", encoding="utf-8", newline="") as source:
            rows += list(csv.DictReader(source, delimiter="\t", quoting=csv.QUOTE_NONE))
    positives = [row for row in rows if float(row["score"]) > 4]
    a, b = (
        encoder.encode([row[side] for row in positives], normalize_embeddings=True)
        for side in ("sentence1", "sentence2")
    )
    everything = encoder.encode(
        [row[side] for row in rows for side in ("sentence1", "sentence2")], normalize_embeddings=True
    ).astype(float)
    distances = ((everything[:, None] - everything[None]) ** 2).sum(-1)[np.triu_indices(len(everything), 1)]
    assert found["alignment"] == pytest.approx(((a - b) ** 2).sum(1).mean(), abs=1e-5)
    assert found["uniformity"] == pytest.approx(np.log(np.exp(-2 * distances).mean()), abs=1e-4)
    assert (found["positive_pairs"], found["sentences"]) == (len(positives), 2 * len(rows))


def test_the_same_encoder_scores_the_same_in_sentence_transformers(tiny: Path, shared_data: Path) -> None:
    """One and the same folder, judged here and by hand with sentence-transformers and scipy: equal to 0.01."""
    from sentence_transformers import SentenceTransformer

    encoder = isotrope.load(tiny, pooling="first_last")
    theirs = SentenceTransformer(_saved(encoder, tiny.parent / "judged"), device="cpu")
    ours = isotrope.evaluate(encoder, data_dir=shared_data).scores["sts"]
    for task in ("STS12", "STS16", "STS-B"):
        with gzip.open(shared_data / "sts" / f"{TASKS[task]}.tsv.gz", "rt", encoding="utf-8", newline="") as source:
            rows = list(csv.DictReader(source, delimiter="\t", quoting=csv.QUOTE_NONE))
        a, b = (theirs.encode([row[side] for row in rows]) for side in ("sentence1", "sentence2"))
        cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        expected = 100 * stats.spearmanr(cosine, [float(row["score"]) for row in rows]).statistic
        assert ours[task]["spearman"] == pytest.approx(expected, abs=0.01)


def _saved(encoder: isotrope.Encoder, folder: Path) -> str:
    encoder.save(folder)
    return str(folder)


def test_missing_data_is_one_sentence(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    encoder = isotrope.load(tiny)
    with pytest.raises(InputError, match="ISOTROPE_DATA"):
        isotrope.evaluate(encoder)
    with pytest.raises(InputError, match="no such folder"):
        isotrope.evaluate(encoder, data_dir=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"sts12\.test\.tsv\.gz is missing"):
        isotrope.evaluate(encoder, data_dir=tmp_path)
    with pytest.raises(InputError, match="Unknown suite"):
        isotrope.evaluate(encoder, suite="stss", data_dir=tmp_path)
    with pytest.raises(InputError, match="Unknown aggregation"):
        isotrope.evaluate(encoder, data_dir=tmp_path, aggregation="sum")


def test_a_score_that_is_no_number_is_named_with_its_line(tiny: Path, made_up: Path) -> None:
    write(made_up, "sts13.test", [("a", "x y", "y z", 1.0), ("a", "x", "z", "high")])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"sts13.*:3: the score is 'high'"):
        isotrope.evaluate(isotrope.load(tiny), data_dir=made_up)
