"""Re-ranking by tokens: the equation, what a search makes of it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import isotrope
from isotrope.cli import app
from isotrope.encoders.token_states import token_states, word_states
from isotrope.errors import InputError
from isotrope.measures.late_interaction import best_matches, rarity
from isotrope.search import token_reranking
from isotrope.search.folder_engine import FolderEngine
from isotrope.search.hits import Hit
from isotrope.search.token_reranking import Reranker

QUERY = "the pilot plays the sonata number 44 near the crater"


@pytest.fixture
def text(tmp_path: Path, topics: list[str]) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(topics[:200]) + "\n", encoding="utf-8")
    return path


def z(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean()) / scores.std()


def test_hits_are_those_of_the_search_in_the_order_of_the_equation(tiny: Path, text: Path, tmp_path: Path) -> None:
    encoder = isotrope.load(tiny)
    isotrope.index(encoder, text, tmp_path / "index")
    with isotrope.open_index(tmp_path / "index", encoder) as index:
        (before,), (after,) = index.search(QUERY, 20), index.search(QUERY, 20, rerank=20)
        (best,) = index.search(QUERY, 3, rerank=20)
    assert {hit.line for hit in after} == {hit.line for hit in before}
    assert best == after[:3]
    query, *documents = token_states(encoder, [QUERY, *(hit.text for hit in before)])
    by_word = best_matches(word_states(encoder, query.ids), [word_states(encoder, one.ids) for one in documents])
    by_state = best_matches(query.states, [one.states for one in documents])
    weights = rarity(by_word)
    first = np.array([hit.score for hit in before])
    expected = 0.5 * z(first) + 0.25 * z(by_word @ weights) + 0.25 * z(by_state @ weights)
    lines = [before[place].line for place in np.argsort(-expected, kind="stable")]
    assert [hit.line for hit in after] == lines
    assert [hit.score for hit in after] == pytest.approx(sorted(expected.tolist(), reverse=True), abs=1e-3)
    assert {hit.line: (hit.cosine, hit.bm25) for hit in after} == {hit.line: (hit.cosine, hit.bm25) for hit in before}


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_every_mode_can_be_ordered_anew(tiny: Path, text: Path, mode: str) -> None:
    """Several queries at once give what each gives alone; equal texts are given once, and ``top`` are given."""
    text.write_text(text.read_text(encoding="utf-8") * 3, encoding="utf-8")
    both = isotrope.search(tiny, text, QUERY, "the chef bakes the bread", top=5, mode=mode, rerank=12)
    alone = isotrope.search(tiny, text, QUERY, top=5, mode=mode, rerank=12)
    assert [hit.text for hit in both[0]] == [hit.text for hit in alone]
    assert len({hit.text for hit in alone}) == 5
    assert [hit.score for hit in alone] == sorted((hit.score for hit in alone), reverse=True)


def test_the_end_of_a_long_text_counts(tmp_path: Path) -> None:
    """Both texts begin alike and are longer than the model reads; the answer stands at the end of the second."""
    begin = "The museum shows pottery, coins and paintings of the town, and tells how people lived there. " * 12
    lines = [begin + "Opening hours are not known.", begin + "Dogs are not allowed inside."]
    text = tmp_path / "long.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    hits = isotrope.search("builtin", text, "may I bring my dog", mode="dense", top=2)
    assert hits[0].score == pytest.approx(hits[1].score, abs=1e-4)  # one beginning, one vector
    assert isotrope.search("builtin", text, "may I bring my dog", mode="dense", top=2, rerank=2)[0].line == 2


def test_queries_and_documents_have_their_prompts(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    encoder.prompts = {"query": "the pilot ", "passage": "the farmer "}
    reranker = Reranker(encoder)
    assert (reranker._query.prompt, reranker._document.prompt) == ("the pilot ", "the farmer ")
    assert Reranker(isotrope.load(tiny))._query.prompt == ""


def test_what_was_read_is_kept_up_to_a_limit(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, hits = isotrope.load(tiny), [Hit(f"the boat number {row}", 1.0 - row, row + 1) for row in range(6)]
    reranker = Reranker(encoder)
    first = reranker.reordered([QUERY], [hits])
    read: list[int] = []

    def counted(encoder: isotrope.Encoder, texts: Any) -> Any:
        read.append(len(texts))
        return token_states(encoder, texts)

    monkeypatch.setattr(token_reranking, "token_states", counted)
    assert reranker.reordered([QUERY], [hits]) == first
    assert read == [1, 0]  # the query; no text
    monkeypatch.setattr(token_reranking, "KEPT", 0)
    assert reranker.reordered([QUERY], [hits]) == first
    assert (len(reranker._kept), reranker._size) == (0, 0)
    assert reranker.reordered([QUERY], [[]]) == [[]]


def test_one_hit_and_a_query_without_known_words(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("the only line\n", encoding="utf-8")
    assert [hit.score for hit in isotrope.search(tiny, tmp_path / "one.txt", "☃", rerank=10)] == [0.0]


@pytest.mark.parametrize(("rerank", "message"), [(4, "rerank must be at least 5, not 4"), (1001, "at most 1,000")])
def test_a_number_that_cannot_be_meant_is_refused(tiny: Path, text: Path, rerank: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        isotrope.search(tiny, text, QUERY, top=5, rerank=rerank)
    answer = CliRunner().invoke(app, ["search", str(tiny), str(text), QUERY, "--top", "5", "--rerank", str(rerank)])
    assert answer.exit_code != 0


def test_the_command_orders_as_the_function_does(tiny: Path, text: Path) -> None:
    answer = CliRunner().invoke(app, ["search", str(tiny), str(text), QUERY, "--top", "3", "--rerank", "9", "--json"])
    expected = [hit.to_dict() for hit in isotrope.search(tiny, text, QUERY, top=3, rerank=9)]
    assert json.loads(answer.stdout) == expected


@pytest.fixture
def kept(tiny: Path, text: Path, tmp_path: Path) -> Path:
    isotrope.index(tiny, text, tmp_path / "kept", tokens=True)
    return tmp_path / "kept"


def test_stored_tokens_give_the_same_order_and_no_text_is_read(
    tiny: Path, text: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """int8 states: scores to a hundredth; a build in small blocks, an update and an added row have theirs too."""
    encoder = isotrope.load(tiny)
    isotrope.index(encoder, text, tmp_path / "plain")
    queries = [QUERY, "the chef bakes the bread"]
    with isotrope.open_index(tmp_path / "plain", encoder) as index:
        expected = index.search(queries, 20, rerank=20)
        assert index.info()["tokens"] is False
    read: list[int] = []

    def counted(encoder: isotrope.Encoder, texts: Any) -> Any:
        read.append(len(texts))
        return token_states(encoder, texts)

    monkeypatch.setattr(token_reranking, "token_states", counted)
    with isotrope.open_index(kept, encoder) as index:
        found = index.search(queries, 20, rerank=20)
        assert index.info()["tokens"] is True
    assert read == [2, 0, 0]  # the queries; no text
    for hits, others in zip(found, expected, strict=True):
        scores = {hit.line: hit.score for hit in hits}
        assert scores == pytest.approx({hit.line: hit.score for hit in others}, abs=0.01)


def test_stored_tokens_go_with_their_rows(
    tiny: Path, text: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotrope.encoders import token_states as module
    from isotrope.search import folder_building

    monkeypatch.setattr(folder_building, "ROWS", 64)
    encoder, made = isotrope.load(tiny), []

    def counted(encoder: isotrope.Encoder, texts: Any) -> Any:
        made.extend(texts)
        return token_states(encoder, texts)

    monkeypatch.setattr(module, "token_states", counted)
    before = [FolderEngine(kept).tokens_of(row).states for row in range(5, 200)]
    lines = text.read_text(encoding="utf-8").splitlines()
    text.write_text("\n".join([*lines[5:], "a new line"]) + "\n", encoding="utf-8")
    isotrope.index(encoder, text, kept, update=True)  # tokens need not be asked for again
    assert made == ["a new line"]
    engine = FolderEngine(kept)
    assert all(np.array_equal(engine.tokens_of(row).states, one) for row, one in enumerate(before))
    more = tmp_path / "more.txt"
    more.write_text("one more line\n", encoding="utf-8")
    isotrope.index(encoder, more, kept, add=True)
    (states,) = token_states(encoder, ["one more line"])
    found = FolderEngine(kept).tokens_of(196)
    assert found.ids.tolist() == states.ids.tolist()
    assert (found.states.astype(np.float32) * states.states.astype(np.float32)).sum(axis=1).min() > 0.9995


def test_tokens_that_cannot_be_kept_are_refused(tiny: Path, text: Path, kept: Path, tmp_path: Path) -> None:
    isotrope.index(tiny, text, tmp_path / "plain")
    with pytest.raises(InputError, match="the index was built without tokens"):
        isotrope.index(tiny, text, tmp_path / "plain", update=True, tokens=True)
    with pytest.raises(InputError, match="token states are kept in a folder, not in Milvus"):
        isotrope.index(tiny, text, f"milvus:{tmp_path / 'docs.db'}", tokens=True)
    (block,) = (kept / "blocks").iterdir()
    (block / "token_states.bin").write_bytes((block / "token_states.bin").read_bytes()[:-7])
    with pytest.raises(InputError, match=r"token_states\.bin: the file is missing or not as it was written"):
        isotrope.open_index(kept)
