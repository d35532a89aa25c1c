"""Linear relational embedding: questions, answers that do not compete, held-out relations that are completed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.api import complete
from isotrope.cli import main
from isotrope.data.corpus import open_corpus
from isotrope.data.held_out import hold_out
from isotrope.data.sources import find_records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import check
from isotrope.methods.lre import FIRST, LinearRelationalEmbedding

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
FAMILIES = Path(__file__).parents[2] / "recipes" / "lre-family-trees.tsv"
SMALL = [
    ("ann", "child", "bob"),
    ("ann", "child", "cid"),
    ("bob", "child", "dan"),
    ("bob", "parent", "ann"),
    ("cid", "parent", "ann"),
]
Batched = Callable[..., Batch]


def build(data: Any = SMALL, **settings: Any) -> LinearRelationalEmbedding:
    chosen = LinearRelationalEmbedding.Settings(**settings)
    check(chosen)
    encoder = LinearRelationalEmbedding.initialise(chosen, find_records(data, ("relations",), None, False).records, 0)
    torch.manual_seed(0)
    return LinearRelationalEmbedding(chosen, encoder, 64, opened(data, encoder)).train()


def opened(data: Any, encoder: Any) -> Any:
    tokenizer = encoder.text_tokenizer
    return open_corpus(data, ("relations",), tokenizer)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> isotrope.api.Run:
    return isotrope.train(
        "lre",
        FAMILIES,
        output=tmp_path_factory.mktemp("lre") / "run",
        seed=1,
        max_steps=350,
        eval_steps=350,
        learning_rate=0.04,
    )


def test_the_card() -> None:
    card = LinearRelationalEmbedding.card
    assert (card.name, card.needs, card.year) == ("lre", "relations", 2001)


def test_the_families_are_those_of_the_paper() -> None:
    """24 people, 12 relations, 112 triples; the second family is the first under other names."""
    rows = [tuple(line.split("\t")) for line in FAMILIES.read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) == len(set(rows)) == 112
    assert len({relation for _, relation, _ in rows}) == 12
    first, second = rows[:56], rows[56:]
    people = [{name for a, _, b in half for name in (a, b)} for half in (first, second)]
    assert [len(half) for half in people] == [12, 12]
    assert not people[0] & people[1]
    same: dict[str, str] = {}
    for (a, relation, b), (c, other, d) in zip(first, second, strict=True):
        assert relation == other
        assert (same.setdefault(a, c), same.setdefault(b, d)) == (c, d)


def test_a_triple_is_two_numbers_of_concepts_and_a_relation(batched: Batched) -> None:
    method = build()
    names = ["ann", "bob", "cid", "dan"]
    assert method.encoder.tokenizer.convert_ids_to_tokens(range(FIRST, FIRST + 4)) == names
    assert method.corpus is not None
    assert method.corpus.names == ["child", "parent"]
    views = batched(method, range(5))
    expected = [[names.index(a), ["child", "parent"].index(r), names.index(b)] for a, r, b in SMALL]
    assert views["triples"].values.tolist() == expected
    assert views["answers_each"].values.tolist() == [2, 2, 1, 1, 1]


def test_the_image_is_the_matrix_times_the_vector(batched: Batched) -> None:
    method = build(dimension=3)
    images = method.represent(batched(method, range(5)))["images"]
    vectors, matrices = method.concepts, method.tower["relations"].module.matrices
    assert torch.allclose(images[0], matrices[0] @ vectors[0])
    assert torch.allclose(images[3], matrices[1] @ vectors[1])


def test_the_loss_is_that_of_a_naive_loop(batched: Batched) -> None:
    method = build(dimension=3, spread=1.0, prior=0.5)
    batch = batched(method, range(5))
    terms = {
        name: float(term.detach()) for name, term in method.loss(method.represent(batch), batch.generator()).items()
    }
    vectors = method.concepts.detach().double().numpy()
    matrices = method.tower["relations"].module.matrices.detach().double().numpy()
    losses = []
    for a, r, b in batch["triples"].values.tolist():
        distances = ((matrices[r] @ vectors[a] - vectors) ** 2).sum(axis=1)
        losses.append(distances[b] + np.log(np.exp(-distances).sum()))
    weights = np.array([0.5, 0.5, 1, 1, 1])
    assert terms["relational"] == pytest.approx((weights * losses).sum() / 4, rel=1e-5)
    assert terms["prior"] == pytest.approx(((vectors**2).sum() + (matrices**2).sum()) / 2, rel=1e-5)
    assert method.weights() == {"prior": 0.5 / 4}  # four questions
    assert method.candidates({}) == 4


def test_held_out_triples_are_counted_neither_in_k_nor_in_the_prior(tmp_path: Path, updated_methods: list[Any]) -> None:
    """Of two answers of a question one may be held out; then the other is alone."""
    isotrope.train("lre", FAMILIES, output=tmp_path / "run", max_steps=1, eval_steps=1, seed=1)
    method = updated_methods[-1]
    rows, held = hold_out(method.corpus, 512, 1)
    assert len(held) == 11
    asked = [tuple(question) for question in method.triples[rows][:, :2].tolist()]
    assert [method.answers_each[row] for row in rows] == [asked.count(question) for question in asked]
    assert method.weights() == {"prior": 1.0 / len(set(asked))}
    everywhere = [tuple(question) for question in method.triples[:, :2].tolist()]
    assert len(set(everywhere)) > len(set(asked))
    assert sum(1 / method.answers_each[rows]) == pytest.approx(len(set(asked)))


def test_another_right_answer_does_not_count_against_a_completion() -> None:
    method = build(dimension=2)
    with torch.no_grad():
        method.concepts.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.5, 0.0], [9.0, 9.0]]))
    asked = {
        "questions": torch.tensor([0.0, 1.0]),
        "answers": torch.tensor([2.0, 3.0]),
    }  # cid is ann's child; dan is bob's
    images = torch.tensor([[1.0, 0.0], [1.4, 0.0]])  # nearest to bob, her other child; nearest to cid, who is not bob's
    found = method.on_held_out({**asked, "images": images})
    assert float(found["completion"]) == 0.5
    assert float(found["completion_mrr"]) == pytest.approx((1 + 1 / 4) / 2)
    level = method.on_held_out(
        {**asked, "images": torch.full((2, 2), torch.inf)}
    )  # all the same or no number: nobody is found
    assert float(level["completion"]) == 0.0


def test_chunks_agree(chunks_agree: Callable[[Method, Method], None]) -> None:
    chunks_agree(build(FAMILIES), build(FAMILIES))


@pytest.mark.parametrize("seed", range(5))
def test_only_what_can_be_completed_is_held_out(seed: int) -> None:
    """Each name and relation of a held-out triple stands in another one as well."""
    method = build(FAMILIES)
    corpus = method.corpus
    assert corpus is not None
    rows, held = hold_out(corpus, 512, seed)
    assert (len(rows), len(held)) == (101, 11)
    assert not set(rows) & set(held)
    assert np.isin(method.triples[held][:, 1], method.triples[rows][:, 1]).all()
    assert np.isin(method.triples[held][:, [0, 2]], method.triples[rows][:, [0, 2]]).all()


def test_names_that_are_needed_stay() -> None:
    chain = [(f"p{n}", "next", f"p{n + 1}") for n in range(40)]  # p0 and p40 stand once
    method = build(chain)
    assert method.corpus is not None
    for seed in range(8):
        rows, held = hold_out(method.corpus, 512, seed)
        assert len(held) == 4
        assert len(np.unique(method.triples[rows][:, [0, 2]])) == 41


def test_a_triple_that_stands_twice_is_not_on_both_sides() -> None:
    method = build([*SMALL * 10])
    assert method.corpus is not None
    assert method.corpus.counts.distinct == 5
    rows, held = hold_out(method.corpus, 512, 0)
    assert len(held) == 0
    assert len(rows) == 50


def test_held_out_relations_of_the_families_are_completed(run: isotrope.api.Run) -> None:
    found = [line["evaluation"] for line in run.history if "evaluation" in line]
    assert found[0]["completion"] < 0.3
    assert found[-1]["completion"] > 0.7
    assert run.selected_by == "the last"


def test_what_was_learned_is_saved_and_can_be_asked(run: isotrope.api.Run, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run.folder / "model"
    assert [one.concept for one in complete(folder, "Colin", "father", top=1)] == ["James"]
    assert {one.concept for one in complete(folder, "Colin", "uncle", top=2)} == {"Arthur", "Charles"}
    ordered = complete(run.encoder, "Sophia", "mother", top=24)
    assert [one.distance for one in ordered] == sorted(one.distance for one in ordered)
    assert len({one.concept for one in ordered}) == 24
    with pytest.raises(SystemExit) as done:
        main(["complete", str(folder), "Colin", "father", "--top", "1", "--json"])
    assert done.value.code == 0
    assert json.loads(capsys.readouterr().out)[0]["concept"] == "James"


def test_the_table_is_a_model_that_others_read(run: isotrope.api.Run) -> None:
    names = ["Colin", "Sophia", "nobody", "colin"]
    vectors = isotrope.load(run.folder / "model").encode(names)
    assert vectors.shape == (4, 8)
    assert not vectors[2:].any()
    assert np.allclose(vectors, run.encoder.encode(names))
    other = pytest.importorskip("sentence_transformers").SentenceTransformer(str(run.folder / "model"), device="cpu")
    assert np.allclose(other.encode(names), vectors, atol=1e-6)


@pytest.mark.parametrize(
    ("concept", "relation", "words"),
    [
        ("Colin", "cousin", "Unknown relation 'cousin'"),
        ("Colinn", "father", "Unknown concept 'Colinn'; did you mean 'Colin'"),
    ],
)
def test_what_is_not_known_is_named(run: isotrope.api.Run, concept: str, relation: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        complete(run.encoder, concept, relation)


def test_a_model_without_relations_says_so(tiny: Path) -> None:
    with pytest.raises(InputError, match="knows no relations"):
        complete(tiny, "a", "b")


@pytest.mark.parametrize(
    ("rows", "settings", "words"),
    [
        ([*SMALL, ("ann", "friend", "dan")], {}, "'friend' has one"),
        ([*SMALL, ("ann", "", "dan")], {}, "relation is empty"),
        (SMALL, {"dimension": 0}, "dimension must be at least 1"),
        (SMALL, {"spread": 0.0}, "spread must be above 0"),
        (SMALL, {"prior": -1.0}, "prior must not be negative"),
        (SMALL, {"model": "builtin"}, "leave model out"),
        (SMALL, {"rtd_weight": 0.1}, "rtd_weight needs a transformer"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, rows: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        isotrope.train("lre", rows, output=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("header", ["head\trelation\ttail", "subject\tpredicate\tobject", "tail\thead\trelation"])
def test_the_columns_are_known_by_name(tmp_path: Path, header: str) -> None:
    names = header.split("\t")
    ours = {"head": 0, "subject": 0, "relation": 1, "predicate": 1, "tail": 2, "object": 2}
    rows = ["\t".join(row[ours[name]] for name in names) for row in SMALL]
    (tmp_path / "rows.tsv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    assert build(tmp_path / "rows.tsv").triples.tolist() == build().triples.tolist()
