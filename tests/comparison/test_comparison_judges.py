"""Several suites judge one comparison: a column each, all tasks in the record, no run made twice for a new judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.comparison import one_run
from isotrope.comparison.comparison_table import Comparison
from isotrope.comparison.judges import choose_judges, judge, protocol
from isotrope.comparison.table_rows import head_of, in_order, shown
from isotrope.comparison.terms import Terms
from isotrope.errors import InputError
from isotrope.evaluation import retrieval
from isotrope.evaluation.suite import Options, find_suite
from isotrope.evaluation.transfer_tasks import TASKS

Short = dict[str, Any]


@pytest.fixture
def three(benchmarks: Path, topics: list[str]) -> Path:
    """STS, transfer and two retrieval sets in one folder."""
    (benchmarks / "transfer").mkdir()
    for task, parts in TASKS.items():
        for number, names in enumerate(parts):
            texts = topics[60 * number : 60 * number + 60]
            rows = [
                f"{(row // 8) % 2}\t{text}" + f"\t{texts[row - 1]}" * (task == "MRPC") for row, text in enumerate(texts)
            ]
            header = "label\tsentence1\tsentence2" if task == "MRPC" else "label\tsentence"
            file = benchmarks / "transfer" / f"{names[-1]}.tsv"
            file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    (benchmarks / "retrieval").mkdir()
    for name, shift in (("alpha", 0), ("beta", 200)):
        parts = {
            "corpus": ["doc_id\ttitle\ttext", *(f"{row}\t\t{topics[shift + row]}" for row in range(80))],
            "queries": ["query_id\ttext", *(f"{row}\tabout {topics[shift + row]}" for row in range(0, 80, 8))],
            "qrels": ["query_id\tdoc_id\tscore", *(f"{row}\t{row + 1}\t1" for row in range(0, 80, 8))],
        }
        for part, lines in parts.items():
            file = benchmarks / "retrieval" / f"{name}.{part}.tsv"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return benchmarks


def test_each_suite_has_a_column_and_the_record_every_task(
    short: Short, sentences: Path, three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: list[int] = []
    monkeypatch.setattr(retrieval, "baseline_orders", lambda *given: orders.append(1) or {})
    suites = "sts,transfer,retrieval"
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", data_dir=three, suite=suites, **short)
    assert found.columns == [
        "sts_average", "sts_b", "transfer_average", "retrieval_average",
        "alignment", "uniformity", "effective_rank", "seconds",
    ]  # fmt: skip
    start, row = found.rows()
    assert len(row.measures["retrieval_average"]) == len(row.measures["transfer_average"]) == 2
    model = tmp_path / "all" / "simcse-seed-43" / "model"
    expected = isotrope.evaluate(model, "retrieval", three, baselines=False).scores["retrieval"]
    assert row.measures["retrieval_average"][1] == pytest.approx(expected["average"]["ndcg_10"], abs=0.01)
    assert row.measures["retrieval_beta_ndcg"][1] == pytest.approx(expected["beta"]["ndcg_10"], abs=0.01)
    kept = json.loads((tmp_path / "all" / "simcse-seed-43" / "judgement.json").read_text(encoding="utf-8"))
    assert {"sts_average", "transfer_mr", "retrieval_alpha_ndcg"} <= set(kept["measures"])
    assert kept["facts"]["judge"] == "sts, all + transfer + retrieval, alpha, beta"
    assert "retrieval-exact-v1 (alpha, beta)" in found.table()
    assert {"retrieval_average", "transfer_average"} <= set(start.measures)
    assert not orders  # a comparison shows no baselines, so none is computed


def test_another_judge_judges_the_models_that_are_there(
    short: Short, sentences: Path, three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = isotrope.compare(sentences, "simcse", tmp_path / "all", data_dir=three, **short)

    def refuse(*given: Any, **named: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(one_run, "make_plan", refuse)
    both = {"data_dir": three, "suite": "sts,retrieval"}
    again = isotrope.compare(sentences, "simcse", tmp_path / "all", **both, **short)
    assert not again.failures
    for one, other in zip(first.runs, again.runs, strict=True):
        assert other.measures["sts_average"] == pytest.approx(one.measures["sts_average"], abs=0.01)
        assert other.measures["seconds"] == one.measures["seconds"]
        assert "retrieval_average" in other.measures
    assert isotrope.compare(sentences, "simcse", tmp_path / "all", **both, **short).runs == again.runs  # from the files
    (three / "retrieval" / "beta.corpus.tsv").unlink()  # another average is another judge
    fewer = isotrope.compare(sentences, "simcse", tmp_path / "all", **both, **short)
    assert "retrieval_beta_ndcg" not in fewer.runs[0].measures
    assert Comparison.read(tmp_path / "all" / "comparison.json").runs == fewer.runs


def test_one_suite_alone_shows_its_tasks() -> None:
    alone = ["seconds", "retrieval_zeta_ndcg", "retrieval_average", "own_thing"]
    assert shown(in_order(alone)) == ["retrieval_average", "retrieval_zeta_ndcg", "seconds", "own_thing"]
    assert head_of("retrieval_zeta_ndcg") == ("zeta nDCG", 2)
    assert head_of("retrieval_mrr") == ("MRR", 3)  # the label-free score, no set
    assert head_of("clustering_tweet") == ("clustering tweet", 2)
    assert shown(["sts_average", "clustering_average", "clustering_v", "clustering_tweet", "robustness_case_lost"]) == [
        "sts_average",
        "clustering_average",
    ]
    several = ["sts_average", "sts_b", "transfer_average", "transfer_mr", "answers_map", "answers_auc", "retrieval_mrr"]
    assert shown(several) == ["sts_average", "sts_b", "transfer_average", "answers_map", "retrieval_mrr"]


@pytest.mark.parametrize("suite", ["clustering", "bitext", "robustness", "answers"])
def test_a_suite_with_a_summary_judges(suite: str, tiny: Path, three: Path, topics: list[str]) -> None:
    """Its figures are those of ``evaluate``, without baselines."""
    files = {
        "clustering/small": [f"{row // 8 % 5}\t{text}" for row, text in enumerate(topics[:60])],
        "parallel/tatoeba_eng": [f"deu\t{text.upper()}\t{text}" for text in topics[:20]],
        "retrieval/wikiqa.test": [f"{row % 3 // 2}\tof {topics[row // 3]}\t{topics[row]}" for row in range(60)],
    }
    heads = ["label\tsentence", "language\tsentence\tenglish", "label\tquestion\tanswer_sentence"]
    for head, (name, rows) in zip(heads, files.items(), strict=True):
        file = three / f"{name}.tsv"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    encoder = isotrope.load(tiny)
    asked = Options(data_dir=three, baselines="baselines" not in find_suite(suite).card.takes)
    expected = find_suite(suite)().summary(find_suite(suite)().run(encoder, asked))
    terms = Terms("tiny", None, {}, {}, data_dir=str(three), judges=choose_judges(suite, str(three), "all"))
    assert judge(encoder, terms, {}) == pytest.approx(expected)
    assert protocol(terms) == find_suite(suite).card.protocol


def test_missing_tasks_are_refused_before_anything_is_trained(benchmarks: Path) -> None:
    assert choose_judges("sts", str(benchmarks), "all") == ("sts",)
    with pytest.raises(InputError, match=r"mr\.tsv\.gz is missing"):
        choose_judges("sts,transfer", str(benchmarks), "all")
    with pytest.raises(InputError, match="no retrieval set found"):
        choose_judges("retrieval", str(benchmarks), "all")
    with pytest.raises(InputError, match=r"The suite retrieval needs its benchmarks: give data_dir"):
        choose_judges("retrieval", None, "all")
