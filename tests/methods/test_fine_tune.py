"""Fine-tuning: what is read, what is learned, what it is judged by, what is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy import stats

import isotrope
from isotrope.data.corpus import Records
from isotrope.data.held_out import hold_out
from isotrope.errors import InputError
from isotrope.measures.classification import agreement
from isotrope.measures.correlation import correlations
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import find

Build = Callable[..., Any]
SHORT = {
    "batch_size": 16,
    "learning_rate": 1e-3,
    "logging_steps": 1,
    "held_out": 0,
    "eval_steps": 4,
    "max_steps": 4,
    "max_length": 64,
}
TOPIC = ("cooking", "sailing", "music", "garden", "space")


def table(path: Path, header: str, rows: list[tuple[Any, ...]]) -> Path:
    path.write_text("\n".join([header, *("\t".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def labelled(tmp_path: Path, topics: list[str]) -> Path:
    return table(tmp_path / "topics.tsv", "text\tlabel", [(topics[i], TOPIC[(i // 8) % 5]) for i in range(320)])


@pytest.fixture
def pairs(tmp_path: Path, topics: list[str]) -> Path:
    rows = [(topics[i], topics[i + 320 + 8 * (i % 2)], "same" if i % 2 == 0 else "different") for i in range(320)]
    return table(tmp_path / "pairs.tsv", "premise\thypothesis\tlabel", rows)


@pytest.fixture
def scored(tmp_path: Path, topics: list[str]) -> Path:
    rows = [(topics[i], topics[i + 320 + 8 * (i % 3)], 5 - 2.25 * (i % 3)) for i in range(240)]
    return table(tmp_path / "scored.tsv", "sentence1\tsentence2\tscore", rows)


@pytest.fixture
def each(labelled: Path, pairs: Path, scored: Path) -> dict[str, Path]:
    return {"labelled": labelled, "pairs": pairs, "scored": scored}


FORMS = pytest.mark.parametrize("form", ["labelled", "pairs", "scored"])


def test_the_card_and_the_record_types_that_a_form_takes() -> None:
    method_class = find("fine-tune")
    assert (method_class.card.needs, method_class.keeps, method_class.chooses) == ("labelled", "last", True)
    assert method_class.record_types(method_class.Settings()) == ("labelled", "labelled-pairs", "scored-pairs")
    assert method_class.record_types(method_class.Settings(form="regression")) == ("scored-pairs", "labelled")  # type: ignore[call-arg]


def test_both_texts_of_a_pair_stand_in_one_row(built: Build, batched: Callable[..., Batch], pairs: Path) -> None:
    method = built("fine-tune", pairs)
    batch = batched(method, range(6))
    tokens, corpus = batch["texts"], method.corpus
    before, between, behind = method.encoder.text_tokenizer.pair_frame
    for row, (ids, segments, length) in enumerate(zip(tokens.ids, tokens.segments, tokens.lengths, strict=True)):
        first, second = corpus.tokens(row, "premise").tolist(), corpus.tokens(row, "hypothesis").tolist()
        assert ids[:length].tolist() == [*before, *first, *between, *second, *behind]
        assert int(segments.sum()) == len(second) + len(behind)
    assert [method.targets.names[number] for number in batch["targets"].values] == Records(
        corpus, list(range(6))
    ).values()


def test_a_long_pair_loses_the_back_of_its_longer_side(built: Build, tmp_path: Path, topics: list[str]) -> None:
    rows = [(" ".join(topics[i : i + 8]), topics[i], i % 2) for i in range(40)]
    method = built("fine-tune", table(tmp_path / "long.tsv", "sentence1\tsentence2\tlabel", rows))
    tokens = method.views(Records(method.corpus, [0]), np.random.default_rng(0))["texts"]
    first, second = method.corpus.tokens(0, "premise").tolist(), method.corpus.tokens(0, "hypothesis").tolist()
    assert len(second) < method.room / 2 < len(first)
    kept = tokens.ids[0].tolist()
    assert len(kept) == 64
    assert kept[1 : 1 + method.room - len(second)] == first[: method.room - len(second)]
    assert kept[-1 - len(second) : -1] == second
    assert method.prepared.remarks == ("40 of 40 pairs are longer than max_length and are cut.",)


def test_the_loss_is_cross_entropy_and_a_guess_costs_the_log_of_the_classes(
    built: Build, batched: Callable[..., Batch], labelled: Path
) -> None:
    method = built("fine-tune", labelled)
    batch = batched(method, range(0, 80, 10))
    found = method.represent(batch)
    assert found["outputs"].shape == (8, 5)
    lines = zip(found["outputs"].detach().double().tolist(), found["targets"].tolist(), strict=True)
    expected = sum(math.log(sum(map(math.exp, row))) - row[wanted] for row, wanted in lines)
    assert float(method.loss(found, batch.generator())["classification"].detach()) == pytest.approx(
        expected / 8, abs=1e-6
    )
    guess = {"outputs": torch.zeros(8, 5), "targets": found["targets"]}
    assert float(method.loss(guess, batch.generator())["classification"]) == pytest.approx(math.log(5))


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_scale_of_scores_is_that_of_the_rows_that_are_trained_on(
    topics: list[str], tiny: Path, tmp_path: Path, updated_methods: list[Method]
) -> None:
    rows = [(f"{topics[i]} {i}", f"{topics[i + 320]} {i}", 5 - 2.25 * (i % 3)) for i in range(240)]
    scored = table(tmp_path / "scored.tsv", "sentence1\tsentence2\tscore", rows)
    isotrope.train("fine-tune", scored, tiny, tmp_path / "run", **{**SHORT, "held_out": 24, "seed": 5})
    method: Any = updated_methods[-1]
    train, held = hold_out(method.corpus, 24, 5)
    gold = Records(method.corpus, list(range(240))).scores()
    assert len(held)
    assert gold[train].mean() != pytest.approx(gold.mean(), abs=1e-4)
    assert (method.targets.mean, method.targets.deviation) == pytest.approx((gold[train].mean(), gold[train].std()))


def test_scores_are_standard_scores_and_the_mean_costs_one(built: Build, scored: Path) -> None:
    method = built("fine-tune", scored)
    batch = Batch(method.views(Records(method.corpus, list(range(240))), np.random.default_rng(0)), 240, 0)
    wanted = batch["targets"].values.double()
    gold = Records(method.corpus, list(range(240))).scores()
    assert torch.allclose(wanted, torch.from_numpy((gold - gold.mean()) / gold.std()), atol=1e-6)
    mean = {"outputs": torch.zeros(240, 1), "targets": wanted.float()}
    assert float(method.loss(mean, batch.generator())["regression"]) == pytest.approx(1.0, abs=1e-5)
    assert (
        float(
            method.loss({"outputs": wanted[:, None].float(), "targets": wanted.float()}, batch.generator())[
                "regression"
            ]
        )
        == 0
    )


def test_numbers_of_single_texts_are_learned_by_regression(built: Build, tmp_path: Path, topics: list[str]) -> None:
    file = table(tmp_path / "numbers.tsv", "text\tlabel", [(topics[i], i % 7 + 0.5) for i in range(70)])
    method = built("fine-tune", file, form="regression")
    batch = Batch(method.views(Records(method.corpus, [0, 6]), np.random.default_rng(0)), 2, 0)
    assert torch.allclose(batch["targets"].values, torch.tensor([-1.5, 1.5]))  # (0.5 − 3.5) / 2 and its opposite
    with pytest.raises(InputError, match="look like scores"):
        built("fine-tune", file)


def test_accuracy_f1_and_the_commonest_class() -> None:
    found, wanted = torch.tensor([1, 1, 0, 0, 1]), torch.tensor([1, 0, 0, 1, 1])
    two = agreement(found, wanted, 2, 1)
    assert [round(float(two[name]), 6) for name in ("accuracy", "f1", "guess")] == [0.6, round(2 / 3, 6), 0.6]
    assert float(agreement(found, wanted, 2, 0)["f1"]) == pytest.approx(0.5)
    three = agreement(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, 2]), 3, 2)
    assert float(three["f1"]) == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert float(agreement(torch.tensor([1]), torch.tensor([1]), 2, 0)["f1"]) == 0


def test_correlations_are_scipys_and_a_constant_has_none() -> None:
    rng = np.random.default_rng(0)
    found, wanted = rng.normal(size=50), rng.integers(0, 5, size=50).astype(float)
    measured = correlations(torch.from_numpy(found), torch.from_numpy(wanted))
    assert float(measured["pearson"]) == pytest.approx(stats.pearsonr(found, wanted).statistic, abs=1e-6)
    assert float(measured["spearman"]) == pytest.approx(stats.spearmanr(found, wanted).statistic, abs=1e-6)
    flat = correlations(torch.ones(50), torch.from_numpy(wanted))
    assert (float(flat["pearson"]), float(flat["spearman"])) == (0.0, 0.0)


@FORMS
def test_neither_order_nor_padding_nor_chunks_matter(
    form: str,
    each: dict[str, Path],
    built: Build,
    batched: Callable[..., Batch],
    chunks_agree: Callable[[Method, Method], None],
) -> None:
    method = built("fine-tune", each[form]).eval()
    whole, alone = (method.represent(batched(method, rows)) for rows in (range(10), [3]))
    assert torch.allclose(whole["outputs"][3], alone["outputs"][0], atol=1e-5)
    backwards = method.represent(batched(method, range(9, -1, -1)))
    assert torch.allclose(backwards["outputs"].flip(0), whole["outputs"], atol=1e-5)
    chunks_agree(built("fine-tune", each[form]), built("fine-tune", each[form]))


@FORMS
def test_resume_equals_uninterrupted(form: str, each: dict[str, Path], resume_agrees: Callable[..., None]) -> None:
    resume_agrees("fine-tune", each[form], child_tuning="F" if form == "labelled" else "D", child_samples=16)


def test_the_head_is_dropped(built: Build, labelled: Path, tiny: Path) -> None:
    method = built("fine-tune", labelled)
    assert np.array_equal(method.export().encode("the chef bakes"), isotrope.load(tiny).encode("the chef bakes"))
    assert {key.split(".")[0] for key in method.export().state_dict()} == {"backbone"}


def test_what_the_words_say_is_learned_and_the_last_weights_are_kept(
    tiny: Path, labelled: Path, tmp_path: Path
) -> None:
    settings = {**SHORT, "max_steps": 60, "eval_steps": 60, "batch_size": 32, "learning_rate": 3e-3, "held_out": 30}
    run = isotrope.train("fine-tune", labelled, tiny, tmp_path / "run", **settings)
    before, after = (line for line in run.history if "evaluation" in line)
    assert (before["chosen_by"], run.selected_by, run.selected_step) == ("accuracy", "the last", 60)
    assert set(after["evaluation"]) == {"accuracy", "f1", "guess"}  # no label-free measures
    assert before["score"] < 0.5
    assert after["score"] > 0.95


def test_every_record_of_the_test_file_counts_and_classes_are_known_by_name(
    tiny: Path, labelled: Path, tmp_path: Path, topics: list[str]
) -> None:
    """Nineteen texts of two classes: no whole number of batches, and classes that have other numbers there."""
    test = table(tmp_path / "test.tsv", "text\tlabel", [(topics[i], ("space", "music")[i % 2]) for i in range(36, 55)])
    run = isotrope.train("fine-tune", labelled, tiny, tmp_path / "run", **SHORT, test=str(test))
    measured = [line["evaluation"] for line in run.history if "evaluation" in line]
    assert set(measured[0]) == {"test_accuracy", "test_f1", "test_guess"}
    assert measured[-1]["test_guess"] == pytest.approx(10 / 19)
    weights = load_file(run.folder / "checkpoints" / "step-4" / "weights.safetensors")
    method = find("fine-tune")(find("fine-tune").Settings(), run.encoder, 64, run.corpus).eval()
    Combined(method).load_state_dict(weights, strict=False)  # the saved ones have the positions too
    vectors = torch.from_numpy(run.encoder.encode([topics[i] for i in range(36, 55)]))
    found = method.tower["head"](vectors).argmax(dim=1)
    wanted = torch.tensor([run.corpus.classes.index(("space", "music")[i % 2]) for i in range(36, 55)])
    share = float((found == wanted).float().mean())
    assert measured[-1]["test_accuracy"] == pytest.approx(share)
    assert json.loads((run.folder / "run.json").read_text())["settings"]["test"] == str(test)


def test_an_auxiliary_loss_leaves_its_score_alone(tiny: Path, pairs: Path, tmp_path: Path) -> None:
    run = isotrope.train("fine-tune", pairs, tiny, tmp_path / "run", **{**SHORT, "held_out": 30}, mlm_weight=0.1)
    (line, *_) = (line for line in run.history if "evaluation" in line)
    assert (line["chosen_by"], "mlm_perplexity" in line["evaluation"]) == ("accuracy", True)


def test_bad_input_is_refused_and_nothing_is_left(
    tiny: Path, labelled: Path, tmp_path: Path, topics: list[str]
) -> None:
    one = table(tmp_path / "one.tsv", "text\tlabel", [(text, "only") for text in topics[:60]])
    flat = table(
        tmp_path / "flat.tsv", "sentence1\tsentence2\tscore", [(topics[i], topics[i + 99], 3) for i in range(60)]
    )
    scored = table(
        tmp_path / "scored.tsv", "sentence1\tsentence2\tscore", [(topics[i], topics[i + 99], i % 5) for i in range(60)]
    )
    strange = table(tmp_path / "strange.tsv", "text\tlabel", [(topics[0], "weather")])
    for data, more, named in (
        (one, {}, "labelled 'only'"),
        (flat, {}, "same score, 3"),
        (labelled, {"form": "regression"}, "needs numbers.*'cooking'"),
        (labelled, {"test": str(strange)}, "'weather' is not among"),
        (labelled, {"test": str(tmp_path / "none.tsv")}, "none.tsv"),
        (labelled, {"positive": "space"}, "one of two classes"),
        (labelled, {"form": "ranking"}, "form is one of"),
        (labelled, {"dropout": 1.0}, "dropout"),
        (labelled, {"eval_data": scored}, "own task"),
    ):
        with pytest.raises(InputError, match=named):
            isotrope.train("fine-tune", data, tiny, tmp_path / "run", **SHORT, **more)
        assert not (tmp_path / "run").exists()
