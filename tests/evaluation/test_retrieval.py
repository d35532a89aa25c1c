"""Retrieval: the ranking is exact, TF-IDF is next to it, a set is read with its mistakes named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.cli import main
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.bm25 import K1, B, Bm25, bm25_order, bm25_scores
from isotrope.evaluation.caption_files import find_captions
from isotrope.evaluation.lexical import lexical_cosines, lexical_order
from isotrope.evaluation.ranked_documents import hybrid_order, nearest
from isotrope.evaluation.retrieval_files import RetrievalSet, SetFiles, find_sets, read_set
from isotrope.evaluation.retrieval_scores import MEASURES, measured
from isotrope.evaluation.suite import Options, find_suite
from isotrope.evaluation.text_vectors import TextVectors

PARTS = {
    "corpus": "doc_id\ttitle\ttext",
    "queries": "query_id\ttext",
    "qrels": "query_id\tdoc_id\tscore",
}


def write(folder: Path, name: str = "small", **rows: list[str]) -> Path:
    """A set with these rows; a part that is not given has good ones."""
    good = {
        "corpus": ["a\tBread\tbakes in the kitchen", "b\t\tboats in the windy bay", "c\tRockets\tland near the crater"],
        "queries": ["1\tbread from a kitchen", "2\tboats", "3\tnobody knows"],
        "qrels": ["1\ta\t2", "1\tb\t0", "2\tb\t1"],
    }
    place = folder / "retrieval"
    place.mkdir(parents=True, exist_ok=True)
    for part, header in PARTS.items():
        lines = [header, *rows.get(part, good[part])]
        (place / f"{name}.{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """Two sets of topics: a query's documents are its neighbours in the list, the nearest graded 2."""
    folder = tmp_path_factory.mktemp("data")
    for name, shift in (("first", 0), ("second", 400)):
        documents = topics[shift : shift + 200]
        queries = list(range(0, 200, 10))
        write(
            folder,
            name,
            corpus=[f"d{row}\t{text.split()[1]}\t{text}" for row, text in enumerate(documents)],
            queries=[f"q{row}\t{documents[row].upper()}" for row in queries],
            qrels=[f"q{row}\td{row + step}\t{2 - step}" for row in queries for step in (0, 1, 2)],
        )
    return folder


def test_the_ranking_is_that_of_all_cosines(tiny: Path, data: Path) -> None:
    encoder = isotrope.load(tiny)
    found = isotrope.evaluate(encoder, "retrieval", data).scores["retrieval"]
    for name in ("first", "second"):
        files = next(files for files in find_sets(data) if files.name == name)
        read = read_set(files)
        cosines = encoder.similarity(read.queries, read.documents).astype(np.float64)
        values = []
        for row, wanted in zip(cosines, read.gains, strict=True):
            order = sorted(range(len(row)), key=lambda place: -row[place])[:10]
            gained = sum(wanted.get(place, 0) / np.log2(rank + 2) for rank, place in enumerate(order))
            values.append(gained / (2 + 1 / np.log2(3)))
        assert found[name]["ndcg_10"] == pytest.approx(100 * np.mean(values), abs=0.01)
        assert found[name]["queries"] == 20
        assert found[name]["documents"] == 200
    for measure in MEASURES:
        both = [found[name][measure] for name in ("first", "second")]
        assert found["average"][measure] == pytest.approx(np.mean(both))
    assert found["average"]["low"] <= found["average"]["ndcg_10"] <= found["average"]["high"]


def test_the_suite_repeats_itself_and_prints(
    tiny: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = (isotrope.evaluate(tiny, "retrieval", data) for _ in range(2))
    assert first.scores == again.scores
    short = find_suite("retrieval")().summary(first)
    assert list(short) == ["retrieval_average", "retrieval_first_ndcg", "retrieval_second_ndcg"]
    assert short["retrieval_average"] == first.scores["retrieval"]["average"]["ndcg_10"]
    other = isotrope.evaluate(tiny, "retrieval", data, seeds=1).scores["retrieval"]["first"]
    assert other["ndcg_10"] == first.scores["retrieval"]["first"]["ndcg_10"]
    assert other["low"] != first.scores["retrieval"]["first"]["low"]
    file = tmp_path / "scores.json"
    words = ["evaluate", str(tiny), "--suite", "retrieval", "--data-dir", str(data), "--json", str(file)]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "TF-IDF" in printed
    assert "retrieval-exact-v1" in printed
    assert json.loads(file.read_text(encoding="utf-8"))["scores"] == first.scores


def test_equal_texts_are_found_and_words_too(tiny: Path, tmp_path: Path, topics: list[str]) -> None:
    """A query that is its document has nDCG 1, by the encoder and by TF-IDF."""
    texts = topics[:40:8]
    write(
        tmp_path,
        corpus=[f"{row}\t\t{text}" for row, text in enumerate(texts)],
        queries=[f"{row}\t{text}" for row, text in enumerate(texts)],
        qrels=[f"{row}\t{row}\t1" for row in range(len(texts))],
    )
    found = isotrope.evaluate(tiny, "retrieval", tmp_path).scores["retrieval"]["small"]
    for each in (found, *(found["baselines"][name] for name in ("TF-IDF", "BM25", "encoder + BM25"))):
        assert [each[name] for name in MEASURES] == [100, 100, 100, 100]


def test_tf_idf_is_scikit_learns() -> None:
    documents = ["red bread and bread", "blue boats", "red boats, red bread"]
    assert lexical_order(documents, ["boats that are blue", "bread"], 2).tolist() == [[1, 2], [0, 2]]
    assert lexical_order(["of the", "and"], ["the"], 5).tolist() == [[0, 1]]  # stop words alone
    assert lexical_cosines(["red bread", "blue"], ["red bread", "green"]) == pytest.approx([1, 0])


def test_a_set_is_read_with_titles_grades_and_without_queries_that_nobody_judged(tmp_path: Path) -> None:
    (files,) = find_sets(write(tmp_path))
    found = read_set(files)
    assert found.documents == ["Bread bakes in the kitchen", "boats in the windy bay", "Rockets land near the crater"]
    assert found.queries == ["bread from a kitchen", "boats"]
    assert found.gains == [{0: 2.0, 1: 0.0}, {1: 1.0}]
    assert found.unjudged == 1


def test_beirs_columns_are_known_and_the_folder_itself_may_hold_the_sets(tmp_path: Path) -> None:
    (tmp_path / "nf.corpus.jsonl").write_text('{"_id": "a", "text": "bread"}\n{"_id": 7, "text": "boats"}\n', "utf-8")
    (tmp_path / "nf.queries.jsonl").write_text('{"_id": "q", "text": "a boat"}\n', "utf-8")
    (tmp_path / "nf.qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\t7\t1\n", "utf-8")
    (files,) = find_sets(tmp_path)
    assert isinstance(files, SetFiles)
    assert read_set(files).gains == [{1: 1.0}]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"qrels": ["1\tz\t1"]}, r"small\.qrels\.tsv:2: document 'z' is not in small\.corpus\.tsv"),
        ({"qrels": ["1\ta\t1", "9\ta\t1"]}, r"small\.qrels\.tsv:3: query '9' is not in small\.queries\.tsv"),
        ({"qrels": ["1\ta\t1", "1\ta\t2"]}, r"document 'a' is judged twice for query '1'"),
        ({"qrels": ["1\ta\tgood"]}, r"small\.qrels\.tsv:2: the score 'good' is not a number"),
        ({"qrels": ["1\ta\tnan"]}, r"the score 'nan' is not a number"),
        ({"qrels": ["1\ta\t0"]}, r"no query has a relevant document"),
        ({"corpus": []}, r"small\.corpus\.tsv: the file holds a header and no rows"),
        ({"queries": []}, r"small\.queries\.tsv: the file holds a header and no rows"),
        ({"corpus": ["a\t\t "]}, r"small\.corpus\.tsv:2: 'a' has no text"),
        ({"corpus": ["a\t\tx", "a\t\ty"]}, r"small\.corpus\.tsv:3: 'a' stands here for the second time"),
    ],
)
def test_a_mistake_in_a_set_is_named_with_its_line(tmp_path: Path, rows: dict[str, list[str]], said: str) -> None:
    (files,) = find_sets(write(tmp_path, **rows))
    with pytest.raises(InputError, match=said):
        read_set(files)


def test_what_is_missing_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no retrieval set found"):
        isotrope.evaluate("no/such/model", "retrieval", tmp_path)
    write(tmp_path)
    (tmp_path / "retrieval" / "small.qrels.tsv").unlink()
    with pytest.raises(InputError, match=r"small\.qrels\.tsv\.gz is missing"):
        isotrope.evaluate("no/such/model", "retrieval", tmp_path)
    (tmp_path / "retrieval" / "small.qrels.tsv").write_text("query\tdocument\n1\ta\n", encoding="utf-8")
    (files,) = find_sets(tmp_path)
    with pytest.raises(InputError, match="no column query_id; columns found: 'query', 'document'"):
        read_set(files)
    write(tmp_path, qrels=["1\tz\t1"])
    with pytest.raises(InputError, match="document 'z' is not in"):
        isotrope.evaluate("no/such/model", "retrieval", tmp_path)


def test_tf_idf_on_the_real_sets_is_the_known_one(shared_data: Path) -> None:
    """With grades, and with every relevant document counted alike, as it was measured elsewhere."""
    for name, graded, alike in (("cranfield", 0.3471, 0.3644), ("dbpedia_small", 0.3292, 0.4140)):
        found = read_set(next(files for files in find_sets(shared_data) if files.name == name))
        order = lexical_order(found.documents, found.queries, 100)
        flat = [{row: float(gain > 0) for row, gain in wanted.items()} for wanted in found.gains]
        assert measured(order, found.gains)["ndcg_10"].mean() == pytest.approx(graded, abs=5e-4)
        assert measured(order, flat)["ndcg_10"].mean() == pytest.approx(alike, abs=5e-4)


def test_bm25_is_its_formula() -> None:
    documents = ["red bread red", "blue boats in blue bays", "red boats carry bread and salt"]
    words = [["red", "bread", "red"], ["blue", "boats", "blue", "bays"], ["red", "boats", "carry", "bread", "salt"]]
    mean = np.mean([len(each) for each in words])

    def score(query: list[str], document: list[str]) -> float:
        total = 0.0
        for word in query:
            with_word = sum(word in each for each in words)
            rarity = np.log(1 + (3 - with_word + 0.5) / (with_word + 0.5))
            count = document.count(word)
            total += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * len(document) / mean))
        return total

    for asked in ("red boats", "salt salt bread", "nothing known"):
        expected = [score(asked.split(), each) for each in words]
        assert bm25_scores([asked] * 3, documents) == pytest.approx(expected)
        assert bm25_order(documents, [asked], 3)[0].tolist() == np.argsort(-np.array(expected), kind="stable").tolist()
    assert bm25_order(["of the", "and"], ["the"], 5).tolist() == [[0, 1]]
    assert bm25_scores(["the"], ["of"]).tolist() == [0]


def test_bm25_takes_the_words_of_tf_idf() -> None:
    """In Chinese a run of characters would else be one word, which no query ever is."""
    documents = ["我喜欢检索系统", "天气很好", "red boats of a bay"]
    assert bm25_scores(["检索"] * 3, documents)[0] > 0
    assert bm25_scores(["检索"] * 3, documents)[1:].tolist() == [0, 0]
    assert bm25_order(documents, ["天"], 1).tolist() == [[1]]


def test_ties_lose_beyond_the_last_rank_too() -> None:
    """A hundred documents count, and more are level: the order of the file does not say which of them are taken."""
    documents = [f"text {row}" for row in range(130)]
    for relevant, recall in ((0, 0.0), (129, 0.0)):
        read = RetrievalSet("level", documents, ["query"], [{relevant: 1.0}], 0)
        vectors = TextVectors([*documents, "query"], np.ones((131, 4), dtype=np.float32) / 2)
        found = nearest(read, vectors, torch.device("cpu"))
        assert found.rows.shape == (1, 100)
        assert measured(found.rows, read.gains)["recall_100"][0] == recall
    towards = np.ones((131, 4), dtype=np.float32) / 2
    towards[:40] = [1, 0, 0, 0]  # better than the level ones, and the query's own vector
    towards[130] = [1, 0, 0, 0]
    read = RetrievalSet("level", documents, ["query"], [{39: 1.0, 41: 2.0, 100: 0.0}], 0)
    found = nearest(read, TextVectors([*documents, "query"], towards), torch.device("cpu"))
    assert sorted(found.rows[0, :40].tolist()) == list(range(40))
    assert measured(found.rows, read.gains)["recall_100"][0] == 0.5
    assert (np.diff(found.cosines[0]) <= 0).all()


def test_hybrid_joins_the_encoder_with_the_documents_that_share_a_word() -> None:
    """Documents without a shared word have no place by BM25, whatever their place in the file."""
    documents, queries = ["red bread", "blue boats", "green salt", "red boats"], ["blue", "boats red", "none"]
    words = Bm25(documents, queries)
    assert [[row for row, _ in words.found(query, 3)] for query in range(3)] == [[1], [3, 0, 1], []]
    every = np.array([bm25_scores([query] * 4, documents) for query in queries])
    assert np.array([words.scores(query, range(4)) for query in range(3)]) == pytest.approx(every)
    assert Bm25(["of the", "and"], ["the"]).found(0, 5) == []
    read = RetrievalSet("small", documents, queries, [{1: 1.0}, {0: 1.0}, {0: 1.0}], 0)
    angles = np.array([[0.0, 0.6, 1.5, 1.0], [1.0, 0.4, 0.0, 0.8], [0.1, 0.2, 0.3, 0.4]])
    for number, angle in enumerate(angles):
        alone = RetrievalSet("small", documents, [queries[number]], [read.gains[number]], 0)
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
        vectors = TextVectors([*documents, queries[number]], np.vstack([circle, np.array([[1, 0]], dtype=np.float32)]))
        cosines, weights = np.cos(angle), every[number]
        scores = 0.6 * (cosines - cosines.mean()) / cosines.std()
        scores += 0.4 * (weights - weights.mean()) / weights.std() if weights.any() else 0
        by_encoder = nearest(alone, vectors, torch.device("cpu"))
        assert hybrid_order(alone, by_encoder, vectors)[0].tolist() == np.argsort(-scores).tolist()


def rankings(encoder: Encoder, folder: Path, name: str) -> tuple[list[dict[str, float]], list[dict[str, int]]]:
    """Run and judgements of a set, as other packages take them."""
    read = read_set(next(files for files in find_sets(folder) if files.name == name))
    cosines = encoder.similarity(read.queries, read.documents)
    run = [{f"d{row}": float(value) for row, value in enumerate(values)} for values in cosines]
    return run, [{f"d{row}": int(gain) for row, gain in wanted.items()} for wanted in read.gains]


def test_the_measures_are_those_of_pytrec_eval(tiny: Path, data: Path) -> None:
    trec = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    encoder = isotrope.load(tiny)
    found = isotrope.evaluate(encoder, "retrieval", data, baselines=False).scores["retrieval"]["first"]
    run, judged = rankings(encoder, data, "first")
    wanted = {f"q{number}": each for number, each in enumerate(judged)}
    names = {"ndcg_cut.10", "recall.10,100"}
    values = trec.RelevanceEvaluator(wanted, names).evaluate({f"q{number}": each for number, each in enumerate(run)})
    for ours, theirs in (("ndcg_10", "ndcg_cut_10"), ("recall_10", "recall_10"), ("recall_100", "recall_100")):
        assert found[ours] == pytest.approx(100 * np.mean([each[theirs] for each in values.values()]), abs=0.01)


def test_the_measures_are_those_of_sentence_transformers(tiny: Path, data: Path) -> None:
    """With every relevant document counted alike: its evaluator knows no grades."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.evaluation import InformationRetrievalEvaluator

    read = read_set(next(files for files in find_sets(data) if files.name == "second"))
    relevant = {str(n): {str(row) for row, gain in wanted.items() if gain > 0} for n, wanted in enumerate(read.gains)}
    judge = InformationRetrievalEvaluator(
        {str(number): text for number, text in enumerate(read.queries)},
        {str(number): text for number, text in enumerate(read.documents)},
        relevant,
        mrr_at_k=[10], ndcg_at_k=[10], precision_recall_at_k=[10, 100], write_csv=False,
    )  # fmt: skip
    theirs = judge(SentenceTransformer(str(tiny), device="cpu"))
    encoder = isotrope.load(tiny)
    cosines = encoder.similarity(read.queries, read.documents)
    flat = [{row: float(gain > 0) for row, gain in wanted.items()} for wanted in read.gains]
    alike = measured(np.argsort(-cosines, axis=1, kind="stable")[:, :100], flat)
    found = isotrope.evaluate(encoder, "retrieval", data, baselines=False).scores["retrieval"]["second"]
    assert 100 * alike["ndcg_10"].mean() == pytest.approx(100 * theirs["cosine_ndcg@10"], abs=0.01)
    for ours, name in (
        ("mrr_10", "cosine_mrr@10"),
        ("recall_10", "cosine_recall@10"),
        ("recall_100", "cosine_recall@100"),
    ):
        assert found[ours] == pytest.approx(100 * theirs[name], abs=0.01)


def write_captions(folder: Path, rows: list[str]) -> Path:
    (folder / "retrieval").mkdir(exist_ok=True)
    lines = ["image_id\tcaption_no\tsentence", *rows]
    (folder / "retrieval" / "small_captions.test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_caption_finds_those_of_its_picture_but_not_itself(tiny: Path, tmp_path: Path, topics: list[str]) -> None:
    """Against a slow loop; a picture with one caption is only found, and a copy within a picture is no second one."""
    rows = [f"{row // 4}.jpg\t{row % 4}\t{text}" for row, text in enumerate(topics[:150])]
    write_captions(tmp_path, [*rows, f"0.jpg\t9\t{topics[0]}", f"alone.jpg\t1\t{topics[900]}"])
    results = isotrope.evaluate(tiny, "retrieval", tmp_path)
    found = results.scores["retrieval"]["small_captions"]
    assert (found["queries"], found["documents"]) == (150, 151)
    texts = [*topics[:150], topics[900]]
    cosines = isotrope.load(tiny).similarity(texts, texts)
    firsts, shares = [], []
    for row in range(150):
        order = sorted((place for place in range(151) if place != row), key=lambda place: -cosines[row, place])
        right = [place // 4 == row // 4 and place < 150 for place in order]
        firsts.append(1 / (1 + right.index(True)) if any(right[:10]) else 0)
        shares.append(sum(right[:10]) / sum(right))
    assert found["mrr_10"] == pytest.approx(100 * np.mean(firsts), abs=0.01)
    assert found["recall_10"] == pytest.approx(100 * np.mean(shares), abs=0.01)
    assert results.items["small_captions"].score() == pytest.approx(found["ndcg_10"])
    assert results.scores["retrieval"]["average"]["ndcg_10"] == found["ndcg_10"]  # no other set
    (section,) = results.sections
    assert "nearest of 151 captions" in section.title
    assert {row[2] for row in section.rows} <= {"", "same", "another"}
    assert len(section.rows) == 16
    assert "the nearest of 151" in results.table()


def test_captions_have_no_part_in_the_average_of_sets(
    tiny: Path, data: Path, tmp_path: Path, topics: list[str]
) -> None:
    write(tmp_path)
    write_captions(tmp_path, [f"{row // 2}.jpg\t{row % 2}\t{text}" for row, text in enumerate(topics[:20])])
    found = isotrope.evaluate(tiny, "retrieval", tmp_path, baselines=False).scores["retrieval"]
    assert found["average"]["ndcg_10"] == found["small"]["ndcg_10"]
    assert "baselines" not in found["small"]


def test_some_sets_alone_are_judged(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path
    write(folder)
    write(folder, "other")
    every = isotrope.evaluate(tiny, "retrieval", folder, baselines=False).scores["retrieval"]
    found = isotrope.evaluate(tiny, "retrieval", folder, tasks=["other"], baselines=False).scores["retrieval"]
    assert set(every) == {"small", "other", "average"}
    assert set(found) == {"other", "average"}
    assert found["other"]["ndcg_10"] == pytest.approx(every["other"]["ndcg_10"])
    with pytest.raises(InputError, match="no retrieval set is named 'smal'; did you mean 'small'"):
        isotrope.evaluate(tiny, "retrieval", folder, tasks=["smal"])


def test_a_set_has_the_same_draws_whether_others_are_judged_or_not(
    tiny: Path, tmp_path: Path, topics: list[str]
) -> None:
    write(tmp_path, "other")
    corpus = [f"{row}\t\t{text}" for row, text in enumerate(topics[:40])]
    queries = [f"{row}\t{text}" for row, text in enumerate(topics[40:80])]
    write(tmp_path, corpus=corpus, queries=queries, qrels=[f"{row}\t{row}\t1" for row in range(40)])
    every, alone = (isotrope.evaluate(tiny, "retrieval", tmp_path, tasks=tasks) for tasks in (None, ["small"]))
    assert alone.scores["retrieval"]["small"] == every.scores["retrieval"]["small"]


def test_captions_without_a_second_one_are_refused(tmp_path: Path) -> None:
    write_captions(tmp_path, ["1.jpg\t1\ta dog", "2.jpg\t1\ta cat"])
    assert [each.name for each in find_captions(tmp_path)] == ["small_captions"]
    with pytest.raises(InputError, match="no picture has two captions"):
        isotrope.evaluate("no/such/model", "retrieval", tmp_path)


def test_degenerate_vectors_gain_nothing(tiny: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All alike: ties lose, so no query has a hit among the first ten; NaN: a clear error."""
    encoder = isotrope.load(tiny)
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.ones((len(texts), 32), dtype=np.float32))
    found = isotrope.evaluate(encoder, "retrieval", data).scores["retrieval"]
    assert found["average"]["ndcg_10"] == found["average"]["mrr_10"] == 0
    assert found["average"]["baselines"]["random vectors"]["ndcg_10"] < 15
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.full((len(texts), 32), np.nan, np.float32))
    with pytest.raises(InputError, match="NaN or infinite vectors for 4"):
        isotrope.evaluate(encoder, "retrieval", data)


def test_a_table_of_words_reads_whole_texts(tiny: Path, data: Path) -> None:
    lengths = [isotrope.evaluate(model, "retrieval", data).protocol["length"] for model in ("builtin-static", tiny)]
    assert lengths[0] == "whole texts"
    assert lengths[1].startswith("texts cut at ")


def test_pairs_of_your_own_are_a_set_with_a_verdict(tiny: Path, tmp_path: Path, topics: list[str]) -> None:
    file = tmp_path / "tickets.jsonl"
    rows = [{"id": row, "ask": text.upper(), "reply": text} for row, text in enumerate(topics[:40])]
    rows.append({"id": 40, "ask": topics[0].upper(), "reply": topics[50]})  # a second answer of the first question
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = {"suite": "retrieval", "texts": file, "columns": ["ask", "reply"], "leaks": False}
    results = isotrope.evaluate(str(tiny), against=[str(tiny)], **asked)
    found = results.scores["retrieval"]["tickets"]
    assert (found["queries"], found["documents"]) == (40, 41)
    encoder = isotrope.load(tiny)
    from isotrope.evaluation.query_passages import passage_measures, read_query_passages

    same = passage_measures(encoder, [read_query_passages(file, ["ask", "reply"])])
    assert found["ndcg_10"] == pytest.approx(same["eval_ndcg10"], abs=1e-6)
    assert [verdict.suite for verdict in results.verdicts] == ["retrieval"]


def test_pairs_may_be_a_list_and_bad_ones_are_named(tmp_path: Path) -> None:
    retrieval = find_suite("retrieval")
    retrieval.check(Options(texts=[("a question", "an answer"), ("another", "a reply")]))  # type: ignore[arg-type]
    file = tmp_path / "pairs.tsv"
    file.write_text("question\tanswer\nfirst\tone\nsecond\t\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"pairs\.tsv:3: a text of the pair is empty"):
        retrieval.check(Options(texts=file))
