"""Queries and passages as eval data: golden MRR and nDCG, and what is refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.eval_data import read_eval_data
from isotrope.evaluation.query_passages import passage_measures, read_query_passages

SPACE = {"q": (1.0, 0.0), "r": (0.0, 1.0), "near q": (1.0, 0.1), "middle": (1.0, 0.9), "near r": (0.1, 1.0)}


class Known:
    """Knows the vectors of five texts."""

    def encode(self, texts: list[str], normalize_embeddings: bool, show_progress_bar: bool) -> np.ndarray:
        vectors = np.array([SPACE[text] for text in texts])
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def written(path: Path, *rows: str, header: str = "query\tpassage") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_mrr_and_ndcg_by_hand(tmp_path: Path) -> None:
    """q ranks near q, middle, near r; its own are middle and near r. r finds near r first."""
    pairs = read_query_passages(written(tmp_path / "e.tsv", "q\tmiddle", "q\tnear r", "r\tnear r", "r\tnear r"))
    assert (pairs.queries, pairs.passages, pairs.own) == (["q", "r"], ["middle", "near r"], [{0, 1}, {1}])
    encoder: Any = Known()
    assert passage_measures(encoder, [pairs]) == pytest.approx({"eval_mrr": 100.0, "eval_ndcg10": 100.0})
    hard = read_query_passages(written(tmp_path / "h.tsv", "q\tmiddle", "r\tnear q", "r\tnear r"))
    found = passage_measures(encoder, [hard])
    # q: near q, middle → 1/2; r: near r first, near q third of three.
    assert found["eval_mrr"] == pytest.approx(100 * (1 / 2 + 1) / 2)
    best = 1 + 1 / np.log2(3)
    assert found["eval_ndcg10"] == pytest.approx(100 * (1 / np.log2(3) + (1 + 1 / np.log2(4)) / best) / 2)
    both = passage_measures(encoder, [pairs, hard])
    assert both["eval_mrr"] == pytest.approx((100 + found["eval_mrr"]) / 2)


def test_columns_say_what_the_file_is(tmp_path: Path) -> None:
    plain = written(tmp_path / "p.tsv", "q\ta", "r\tb")
    scored = written(tmp_path / "s.tsv", "a\tb\t1", "c\td\t2", header="sentence1\tsentence2\tscore")
    assert read_eval_data([plain]).chosen_by == "eval_mrr"
    assert read_eval_data([scored]).chosen_by == "spearman"
    with pytest.raises(InputError, match=r"has scores and .* has none"):
        read_eval_data([plain, scored])
    with pytest.raises(InputError, match=r"p.tsv:3: a text of the pair is empty"):
        read_eval_data([written(plain, "q\ta", "r\t")])
    with pytest.raises(InputError, match="at least 2 different passages"):
        read_eval_data([written(plain, "q\ta", "r\ta")])


def test_eval_data_are_refused_before_a_folder_is_made(tmp_path: Path, sentences: Path, tiny: Path) -> None:
    wrong = written(tmp_path / "w.tsv", "a\tb", header="some\tthing")
    with pytest.raises(InputError, match=r"w.tsv"):
        isotrope.train("simcse", sentences, model="/no/such/model", output=tmp_path / "run", eval_data=wrong)
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_a_run_is_selected_by_queries_and_passages(
    tmp_path: Path, topics: list[str], sentences: Path, tiny: Path
) -> None:
    file = written(tmp_path / "e.tsv", *(f"{text.split(' with')[0]}\t{text}" for text in topics[:20]))
    run = isotrope.train(
        "simcse",
        sentences,
        model=tiny,
        output=tmp_path / "run",
        eval_data=file,
        max_steps=2,
        batch_size=8,
        max_length=32,
    )
    line = next(line for line in run.history if "evaluation" in line)
    assert line["chosen_by"] == "eval_mrr"
    assert {"eval_mrr", "eval_ndcg10"} <= set(line["evaluation"])
