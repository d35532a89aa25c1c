"""Held-out records in two parts: nothing stands in both, what belongs together stays together, few are not parted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.evaluation.held_out_parts import FEWEST, part_held_out


def opened(tiny: Path, data: Any, *record_types: str) -> Corpus:
    return open_corpus(data, record_types, isotrope.load(tiny).text_tokenizer)


def texts(corpus: Corpus, rows: Any) -> set[str]:
    return {corpus.text(row, field) for row in rows for field in corpus.record_type.fields}


SENTENCES = [f"The guard of house {n} sold seven coats to guest {3 * n}." for n in range(1000)]


def test_single_sentences(tiny: Path) -> None:
    corpus = opened(tiny, [*SENTENCES, *SENTENCES[:100]], "sentences")
    held = np.r_[0:300, 1000:1100]  # the last hundred are copies
    parts = part_held_out(corpus, held)
    assert parts.apart
    assert not texts(corpus, parts.choosing) & texts(corpus, parts.judging)
    assert sorted([*parts.choosing, *parts.judging]) == held.tolist()
    assert abs(len(parts.choosing) - len(parts.judging)) < 100


def test_documents_stay_whole(tiny: Path, tmp_path: Path) -> None:
    lines = [text + ("\n" if n % 5 == 4 else "") for n, text in enumerate(SENTENCES)]
    (tmp_path / "docs.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = opened(tiny, tmp_path / "docs.txt", "sentences")
    parts = part_held_out(corpus, np.arange(500))
    assert parts.apart
    assert len(parts.choosing) == len(parts.judging) == 250
    assert not {*corpus.documents[parts.choosing]} & {*corpus.documents[parts.judging]}


def test_no_text_stands_on_both_sides(tiny: Path) -> None:
    """Two answers a question, and one answer that many questions share."""
    rows = [(f"question {n // 2} of many", f"answer {n} to it") for n in range(1000)]
    rows[::50] = [(question, "nobody knows") for question, _ in rows[::50]]
    corpus = opened(tiny, rows, "pairs")
    parts = part_held_out(corpus, np.arange(500))
    assert parts.apart
    assert not texts(corpus, parts.choosing) & texts(corpus, parts.judging)
    assert len(parts.choosing) + len(parts.judging) >= 490


@pytest.mark.parametrize("rows", [range(FEWEST), range(0), range(900)])
def test_few_records_and_those_that_are_trained_on_are_not_parted(tiny: Path, rows: range) -> None:
    parts = part_held_out(opened(tiny, SENTENCES, "sentences"), np.array(rows, dtype=np.int64))
    assert not parts.apart
    assert parts.choosing.tolist() == parts.judging.tolist() == list(rows)
