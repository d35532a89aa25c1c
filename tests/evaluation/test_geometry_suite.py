"""The suite: layers, words, pairs and the trail against loops by hand; one pass; bad input."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation import geometry_words
from isotrope.evaluation.edit_distance import edit_distance
from isotrope.evaluation.geometry import alignment, uniformity
from isotrope.evaluation.geometry_description import describe, describe_vectors, trail
from isotrope.evaluation.geometry_layers import LayerCosines, LayerSums, WordStates
from isotrope.evaluation.geometry_pairs import density, describe_pairs
from isotrope.evaluation.geometry_words import by_frequency, frequency_table

Encoder = isotrope.Encoder


@pytest.fixture
def encoder(tiny: Path) -> Encoder:
    return isotrope.load(tiny)


@pytest.fixture
def texts(topics: list[str]) -> list[str]:
    return [topic[: 20 + 3 * number] for number, topic in enumerate(topics[:60])]  # of many lengths


def states(encoder: Encoder, text: str) -> list[np.ndarray]:
    """H_0 … H_L of one text, alone in its batch, float64, unit rows."""
    with torch.inference_mode():
        layers = encoder.eval().layers(encoder.tokenize([text]))
    rows = [layer[0].double().numpy() for layer in layers]
    return [row / np.linalg.norm(row, axis=1, keepdims=True) for row in rows]


def test_layers_equal_a_loop_over_pairs_of_tokens(encoder: Encoder, texts: list[str]) -> None:
    found = describe(encoder, texts).layers
    everything = [states(encoder, text) for text in texts]
    assert [row.layer for row in found] == [0, 1, 2]
    for layer, row in enumerate(found):
        inside, between = [], []
        for number, first in enumerate(everything):
            own = first[layer] @ first[layer].T
            inside.append(own[np.triu_indices(len(own), 1)])
            between += [(first[layer] @ second[layer].T).ravel() for second in everything[number + 1 :]]
        assert row.self_similarity == pytest.approx(np.concatenate(inside).mean(), abs=1e-5)
        assert row.mean_cosine == pytest.approx(np.concatenate(between).mean(), abs=1e-5)
        assert row.adjusted == pytest.approx(row.self_similarity - row.mean_cosine)


def test_long_sentences_weigh_by_their_pairs_of_tokens() -> None:
    """Golden, by hand:

    two equal tokens (one pair, cosine 1) and three orthogonal ones (three pairs, cosine 0), padded to three.
    """
    layer = torch.zeros(2, 3, 4)
    layer[0, :2, 0] = 5
    layer[0, 2] = 9  # padding
    layer[1] = torch.eye(4)[1:]
    sums = LayerSums()
    sums.add((layer,), torch.tensor([[1, 1, 0], [1, 1, 1]]))
    assert sums.rows() == [LayerCosines(0, self_similarity=0.25, mean_cosine=0.0, adjusted=0.25)]


def test_one_pass_gives_the_vectors_of_encode_and_leaves_no_hook(
    encoder: Encoder, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = asdict(describe_vectors(encoder.encode(texts), seed=5))
    rows = []
    forward = encoder.backbone.forward
    monkeypatch.setattr(
        encoder.backbone, "forward", lambda **named: rows.append(len(named["input_ids"])) or forward(**named)
    )
    encoder.train()
    found = asdict(describe(encoder, texts, seed=5))
    assert sum(rows) == len(texts)
    assert {name: found[name] for name in expected} == expected
    assert not encoder.backbone._forward_hooks
    assert not encoder.backbone._forward_pre_hooks
    assert encoder.training
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("pooling", ["cls", "first_last", "max"])
def test_every_pooling_can_be_described(tiny: Path, texts: list[str], pooling: str) -> None:
    chosen = isotrope.load(tiny, pooling=pooling)
    assert describe(chosen, texts).mean_cosine == describe_vectors(chosen.encode(texts)).mean_cosine


def test_words_are_ranked_by_the_text_and_specials_are_none() -> None:
    ids, counts = by_frequency(np.array([3, 3, 3, 5, 5, 4, 4, 0, 0, 0, 0]), vocabulary=9, specials=frozenset({0, 8}))
    assert ids.tolist() == [3, 4, 5]
    assert counts.tolist() == [3, 2, 2]


def test_the_frequency_table_equals_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry_words, "BINS", ((0, 2), (2, 5), (5, 40), (40, 50)))
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(30, 6))
    own, counts = rng.permutation(30)[:11], np.arange(11, 0, -1)
    table = frequency_table(torch.from_numpy(vectors), own, counts)
    assert [(row.words, row.occurrences) for row in table] == [(2, 21), (3, 24), (6, 21), (0, 0)]
    for row, ranks in zip(table, ([0, 1], [2, 3, 4], range(5, 11)), strict=False):
        words = [own[rank] for rank in ranks]
        assert row.norm == pytest.approx(np.mean([np.linalg.norm(vectors[word]) for word in words]))
        for k in (3, 5, 7):
            others = [[other for other in range(30) if other != word] for word in words]
            far = [
                sorted(np.linalg.norm(vectors[w] - vectors[o]) for o in rest)[:k]
                for w, rest in zip(words, others, strict=True)
            ]
            dots = [
                sorted((vectors[w] @ vectors[o] for o in rest), reverse=True)[:k]
                for w, rest in zip(words, others, strict=True)
            ]
            assert row.distance[str(k)] == pytest.approx(np.mean(far), rel=1e-5)
            assert row.dot_product[str(k)] == pytest.approx(np.mean(dots), rel=1e-5)
    assert table[3].norm is None
    assert set(table[3].distance.values()) == {None}


def test_words_of_the_last_layer_are_means_over_their_places(encoder: Encoder, texts: list[str]) -> None:
    sums: dict[int, list[np.ndarray]] = {}
    for text in texts:
        tokens = encoder.tokenize([text])
        with torch.inference_mode():
            last = encoder.eval().layers(tokens)[-1][0].double().numpy()
        for token, state in zip(tokens.ids[0].tolist(), last, strict=True):
            sums.setdefault(token, []).append(state)
    words = [token for token in sums if token not in encoder.text_tokenizer.specials]
    ranked = sorted(words, key=lambda token: (-len(sums[token]), token))
    found = describe(encoder, texts).words.last_layer
    norms = [np.mean([np.linalg.norm(state) for state in sums[token]]) for token in ranked[:100]]
    assert found[0].norm == pytest.approx(np.mean(norms), rel=1e-5)
    means = np.array([np.mean(sums[token], axis=0) for token in ranked])
    distances = np.linalg.norm(means[:, None] - means[None], axis=-1)
    assert found[0].distance["3"] == pytest.approx(np.sort(distances, axis=1)[:100, 1:4].mean(), rel=1e-4)


def pairs_of(topics: list[str]) -> tuple[list[str], list[str], list[float]]:
    rng = np.random.default_rng(0)
    first = topics[:80]
    second = [text if number % 5 == 0 else topics[200 + 3 * number] for number, text in enumerate(first)]
    return first, second, [5.0 if number % 5 == 0 else round(float(rng.uniform(0, 4)), 1) for number in range(80)]


def test_pairs_equal_the_definitions(encoder: Encoder, topics: list[str]) -> None:
    first, second, gold = pairs_of(topics)
    found = describe_pairs(encoder, first, second, gold)
    a, b = encoder.encode(first).astype(float), encoder.encode(second).astype(float)
    positive = np.array(gold) > 4
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    edits = [loop(x.split(), y.split()) for x, y in zip(first, second, strict=True)]
    assert found.alignment == pytest.approx(alignment(a[positive], b[positive]), abs=1e-6)
    assert found.uniformity == pytest.approx(uniformity(np.vstack([a, b])), abs=1e-6)
    assert found.spearman == pytest.approx(100 * stats.spearmanr(cosine, gold).statistic, abs=0.05)
    assert found.lexical.edit_gold == pytest.approx(100 * stats.spearmanr(edits, gold).statistic)
    assert found.lexical.edit_cosine == pytest.approx(100 * stats.spearmanr(edits, cosine).statistic, abs=0.05)
    assert (found.pairs, found.positive_pairs) == (80, int(positive.sum()))
    json.dumps(asdict(found), allow_nan=False)


def test_density_by_gold_score() -> None:
    cosine = np.array([0.1, 0.2, 0.3, 0.5, 0.9, 0.9, 0.8])
    gold = np.array([0.0, 0.9, 0.99, 1.0, 4.0, 5.0, 3.99])
    table = density(cosine, gold)
    assert [row.count for row in table] == [3, 1, 0, 1, 2]
    assert table[0].mean == pytest.approx(0.2)
    assert table[0].quantiles["50"] == pytest.approx(0.2)
    assert (table[2].mean, table[2].quantiles, table[2].curve) == (None, {}, [])
    assert table[4].curve == []  # two equal cosines have no width
    grid, curve = np.array(table[0].curve).T
    assert (grid[0], grid[-1]) == (0.1, 0.9)
    assert grid[curve.argmax()] == pytest.approx(0.2, abs=0.01)
    wide = density(np.random.default_rng(0).normal(0.5, 0.1, 4000), np.full(4000, 2.5))[2].curve
    assert trapezoid([y for _, y in wide], [x for x, _ in wide]) == pytest.approx(1, abs=0.01)


def loop(a: list[str] | str, b: list[str] | str) -> int:
    """Levenshtein, as in a textbook."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
    return table[-1][-1]


@given(st.lists(st.tuples(st.text("abc ", max_size=12), st.text("abcé ", max_size=12)), min_size=1, max_size=12))
def test_edit_distance_equals_a_loop(pairs: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    for rows in (3, 256):
        assert edit_distance(first, second, "characters", rows).tolist() == [loop(a, b) for a, b in pairs]
        assert edit_distance(first, second, "words", rows).tolist() == [loop(a.split(), b.split()) for a, b in pairs]


def test_edit_distance_by_hand() -> None:
    assert edit_distance(["kitten", "", "abc"], ["Sitting", "abc", "abc"], "characters").tolist() == [3, 3, 0]
    assert edit_distance(["A man plays.", "a b"], ["a man is playing .", "b"]).tolist() == [2, 1]
    with pytest.raises(InputError, match="did you mean 'words'"):
        edit_distance(["a"], ["b"], "word")


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_the_trail_of_a_run_is_its_history(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 4, "batch_size": 16, "eval_steps": 2, "held_out": 40}
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", **settings)
    found = trail(run.folder)
    assert [row["step"] for row in found] == [0, 2, 4]
    evaluations = [line["evaluation"] for line in run.history if "evaluation" in line]
    assert [row["alignment"] for row in found] == [line["alignment"] for line in evaluations]
    results = isotrope.evaluate(run.folder / "model", suite="geometry", texts=sentences)
    assert results.scores["geometry"]["trail"] == found
    assert "The run, on its held-out pairs" in results.table()
    assert "trail" not in isotrope.evaluate(run.encoder, suite="geometry", texts=sentences).scores["geometry"]
    with pytest.raises(InputError, match="no run is here"):
        trail(tmp_path)


def test_texts_that_cannot_be_described(encoder: Encoder, topics: list[str]) -> None:
    for given_texts, said in (([], "none was given"), (["one"], "one text was given"), ("one", "one text was given")):
        with pytest.raises(InputError, match=said):
            describe(encoder, given_texts)
    with pytest.raises(InputError, match="All vectors are the same"):
        describe(encoder, ["the same sentence"] * 20)
    with torch.no_grad():
        encoder.backbone.embeddings.LayerNorm.weight.fill_(torch.nan)
    with pytest.raises(InputError, match="NaN or infinite"):
        describe(encoder, topics[:20])
    with pytest.raises(InputError, match="NaN or infinite"):
        describe_pairs(encoder, *pairs_of(topics))


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ([4.0, 1.0, 2.0], "No pair has a gold score above 4"),
        ([0.9, 0.1, 0.2], "No pair has a gold score above 4"),
        ([50.0, 10.0, 20.0], "from 0 to 5"),
        ([5.0, np.nan, 2.0], "from 0 to 5"),
        ([5.0, 1.0], "differ in number: 3, 3 and 2"),
    ],
)
def test_pairs_that_cannot_be_described(encoder: Encoder, gold: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        describe_pairs(encoder, ["a chef", "a boat", "bread"], ["a cook", "a ship", "a rocket"], gold)
    with pytest.raises(InputError, match="At least two scored pairs"):
        describe_pairs(encoder, [], [], [])


def write_stsb(folder: Path, name: str, rows: tuple[list[str], list[str], list[float]]) -> None:
    (folder / "sts").mkdir(exist_ok=True, parents=True)
    with gzip.open(folder / "sts" / f"stsb.{name}.tsv.gz", "wt", encoding="utf-8") as target:
        target.write(
            "sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{g}\n" for a, b, g in zip(*rows, strict=True))
        )


def test_the_suite_on_a_text_and_on_stsb(encoder: Encoder, topics: list[str], texts: list[str], tmp_path: Path) -> None:
    write_stsb(tmp_path, "dev", pairs_of(topics))
    file = tmp_path / "text.txt"
    file.write_text("\n".join([*texts, texts[0], "", texts[1]]) + "\n", encoding="utf-8")
    results = isotrope.evaluate(encoder, suite="geometry", texts=file, data_dir=tmp_path, seeds=3)
    scores = results.scores["geometry"]
    assert scores["text"] == asdict(describe(encoder, texts, seed=3))
    assert scores["pairs"] == asdict(describe_pairs(encoder, *pairs_of(topics)))
    protocol = {name: results.protocol[name] for name in ("protocol", "text", "sentences", "seed")}
    assert protocol == {
        "protocol": "geometry-v1",
        "text": "text.txt",
        "sentences": "60 different, 2 repeats left out",
        "seed": 3,
    }
    assert results.protocol["STS-B"].startswith("dev, positive above 4")
    for word in (
        "mean cosine of two sentences",
        "Tokens by layer",
        "input embeddings",
        "STS-B cosine by gold score",
        "geometry-v1",
    ):
        assert word in results.table()
    results.to_json(tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["scores"] == results.scores


def test_without_a_text_the_sentences_of_stsb_are_described(
    encoder: Encoder, topics: list[str], tmp_path: Path
) -> None:
    first, second, gold = pairs_of(topics)
    write_stsb(tmp_path, "dev", (first[:50], second[:50], gold[:50]))
    write_stsb(tmp_path, "test", (first[50:], second[50:], gold[50:]))
    scores = isotrope.evaluate(encoder, suite="geometry", data_dir=tmp_path).scores["geometry"]
    distinct = list(dict.fromkeys([*first, *second]))
    assert scores["text"]["sentences"] == len(distinct) < 160
    expected = describe_pairs(encoder, first, second, gold)
    assert scores["pairs"]["alignment"] == pytest.approx(expected.alignment, abs=1e-6)
    assert scores["pairs"]["uniformity"] == pytest.approx(expected.uniformity, abs=1e-6)


def test_bad_input_of_the_suite(encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    file = tmp_path / "text.txt"

    def refused(said: str, **given: object) -> None:
        with pytest.raises(InputError, match=said):
            isotrope.evaluate(encoder, **{"suite": "geometry", **given})  # type: ignore[arg-type]

    refused("give texts, or data_dir")
    refused("give texts, or data_dir", data_dir=tmp_path)
    refused("no such file", texts=file)
    file.write_text("", encoding="utf-8")
    refused("the file is empty", texts=file)
    file.write_text("\n\n \n", encoding="utf-8")
    refused("two different sentences; 0 found", texts=file)
    file.write_text("one line\none line\n", encoding="utf-8")
    refused("two different sentences; 1 found", texts=file)
    refused(
        "The transfer suite takes no texts; leave it out, or choose answers, clustering",
        texts=file,
        suite="transfer",
    )
    write_stsb(tmp_path, "dev", (["a b", "c d"], ["a c", "d"], [1.0, 2.0]))
    refused("No pair has a gold score above 4", data_dir=tmp_path)


def test_padding_is_no_word_even_where_its_id_is_one() -> None:
    words = WordStates(np.array([0, 2]), 3)
    words.add(
        torch.tensor([[[3.0, 4.0], [9.0, 9.0]], [[1.0, 0.0], [0.0, 2.0]]]),
        torch.tensor([[0, 0], [1, 0]]),
        torch.tensor([[1, 0], [1, 1]]),
    )
    means, norms = words.means()
    assert words.counts.tolist() == [2, 0]
    assert means[0].tolist() == [1.5, 3.0]
    assert norms[0] == 3.5
