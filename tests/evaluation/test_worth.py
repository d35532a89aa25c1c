"""The final table of a run: what it measures, what it says, and when it says nothing."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.cli import main
from isotrope.data.corpus import open_corpus
from isotrope.evaluation.held_out_parts import part_held_out
from isotrope.evaluation.label_free import Pairs, label_free, natural_pairs, partner_ranks, ranks_of_own
from isotrope.evaluation.lexical import lexical_scores
from isotrope.evaluation.worth import held_out_pairs
from isotrope.evaluation.worth_table import Footing, Worth, WorthRow
from isotrope.measures.intervals import Interval
from isotrope.training.run import Run

SHORT: dict[str, Any] = {
    "batch_size": 16,
    "max_steps": 4,
    "eval_steps": 4,
    "logging_steps": 4,
    "held_out": 40,
    "max_length": 32,
}
WORSE = {"learning_rate": 0.5, "max_grad_norm": None, "warmup_ratio": 0.0}  # absurd on purpose
unpaid = pytest.mark.filterwarnings("ignore:Training did not pay", "ignore:Training did not improve")
spoilt = pytest.mark.filterwarnings("ignore:Step .*directions are being lost", "ignore:Step .*mean cosine")


@pytest.fixture(autouse=True)
def with_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_FINAL_TABLE")


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """Sentences of no document, so that halves are searched for."""
    path = tmp_path_factory.mktemp("loose") / "loose.txt"
    path.write_text("\n".join(topics[:400]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tiny: Path, loose: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with its table, for the tests that only look at it."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.delenv("ISOTROPE_FINAL_TABLE")
        warnings.simplefilter("ignore")
        folder = tmp_path_factory.mktemp("trained") / "run"
        return isotrope.train("simcse", loose, model=tiny, output=folder, learning_rate=1e-3, **SHORT)


def naive_mrr(scores: np.ndarray) -> tuple[float, float]:
    """MRR and first place × 100, entry by entry."""
    ranks = []
    for i, row in enumerate(scores.astype(np.float64)):
        above = sum(1 for j, score in enumerate(row) if score > row[i])
        ties = sum(1 for j, score in enumerate(row) if j != i and score == row[i])
        ranks.append(1 + above + ties / 2)
    return 100 * sum(1 / rank for rank in ranks) / len(ranks), 100 * sum(rank < 1.5 for rank in ranks) / len(ranks)


def cosines(encoder: isotrope.Encoder, pairs: Pairs) -> np.ndarray:
    sides = [encoder.encode(side, normalize_embeddings=True) for side in (pairs.first, pairs.second)]
    return sides[0] @ sides[1].T


def by_name(run: Run) -> dict[str, WorthRow]:
    assert run.worth is not None
    return {row.name: row for row in run.worth.rows}


def test_the_figures_are_those_of_a_naive_computation(tiny: Path, trained: Run) -> None:
    run, rows, pairs = trained, by_name(trained), held_out_pairs(trained.corpus, trained.held)
    assert run.worth is not None
    assert (list(rows), run.worth.left_out) == (["start", "this run", "builtin", "TF-IDF"], {})
    assert pairs.origin == "halves"
    assert run.worth.records == len(pairs.first) >= 20
    assert f"other half of a held-out sentence among {len(pairs.first)}" in run.worth.measure
    for name, encoder in {"start": tiny, "this run": run.folder / "model", "builtin": "builtin"}.items():
        mrr, first = naive_mrr(cosines(isotrope.load(encoder), pairs))
        assert (rows[name].mrr, rows[name].first) == pytest.approx((mrr, first), abs=0.01)
    trained = [run.corpus.text(row) for row in range(len(run.corpus)) if row not in run.held]
    found = naive_mrr(lexical_scores([*trained, *pairs.first, *pairs.second], pairs.first, pairs.second))
    assert (rows["TF-IDF"].mrr, rows["TF-IDF"].first) == pytest.approx(found)
    for row in rows.values():
        assert row.interval.low <= row.mrr <= row.interval.high
    assert rows["this run"].ahead is None
    ahead = rows["start"].ahead
    assert ahead is not None
    assert ahead.low <= rows["this run"].mrr - rows["start"].mrr <= ahead.high
    assert json.loads((run.folder / "run.json").read_text())["worth"] == json.loads(json.dumps(run.worth.to_dict()))


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Single sentences, enough to hold out several hundred."""
    who, what = ("chef", "pilot", "nurse", "farmer"), ("bread", "maps", "coats", "tools", "lamps")
    lines = [f"The {who[n % 4]} of house {n} sold {n % 7} {what[n % 5]} to guest {n * 3}." for n in range(4000)]
    (tmp_path / "many.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "many.txt"


@unpaid
def test_other_records_choose_than_those_that_judge(tiny: Path, many: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "held_out": 400, "learning_rate": 1e-3, "keep_start": False}
    run = isotrope.train("simcse", many, model=tiny, output=tmp_path / "run", **settings)
    parts = part_held_out(run.corpus, run.held)
    judged = held_out_pairs(run.corpus, parts.judging)
    assert run.worth is not None
    assert run.worth.records == len(judged.first) >= 100
    assert run.worth.measure.endswith("(held-out sentences, cut in two; others chose the checkpoint)")
    assert not any("chosen on these records" in said for said in run.worth.sentences)
    assert by_name(run)["this run"].mrr == pytest.approx(naive_mrr(cosines(run.encoder, judged))[0], abs=0.01)
    chosen_by = natural_pairs(run.corpus, parts.choosing)
    assert not {*chosen_by.first} & {*judged.first}
    (logged,) = (line["evaluation"] for line in run.history if "evaluation" in line and line["step"] == 4)
    assert logged["retrieval_mrr"] == pytest.approx(label_free(run.encoder, chosen_by)["retrieval_mrr"], abs=1e-4)


@unpaid
def test_where_eval_data_choose_all_held_out_records_judge(
    tiny: Path, many: Path, samples: dict[str, Path], tmp_path: Path
) -> None:
    settings = {**SHORT, "held_out": 400, "eval_data": samples["scored-pairs"]}
    run = isotrope.train("simcse", many, model=tiny, output=tmp_path / "run", **settings)
    assert run.worth is not None
    assert run.worth.records == len(held_out_pairs(run.corpus, run.held).first) > 300
    assert run.worth.measure.endswith("(held-out sentences, cut in two)")


def test_records_that_both_choose_and_judge_are_named(trained: Run) -> None:
    assert trained.worth is not None
    assert trained.worth.sentences[-1].startswith("The checkpoint was chosen on these records too")


def test_held_out_text_alone_is_measured(trained: Run) -> None:
    held = {trained.corpus.text(row) for row in trained.held}
    pairs = held_out_pairs(trained.corpus, trained.held)
    assert {f"{a} {b}" for a, b in zip(pairs.first, pairs.second, strict=True)} <= held
    assert len(pairs.first) >= 20


@spoilt
@unpaid
def test_a_run_that_makes_things_worse_is_told_so(
    capsys: pytest.CaptureFixture[str], loose: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in {**SHORT, **WORSE, "max_steps": 2}.items()]
    settings.append("--keep-start=false")
    with pytest.raises(SystemExit) as stop:
        main(["train", "simcse", str(loose), "--model", "builtin-base", "--output", str(out), *settings])
    said = capsys.readouterr()
    assert stop.value.code == 0, said.err
    assert "this run minus it" in said.out
    assert "Training did not pay: " in said.out
    assert "Training did not pay" not in said.err  # once is enough
    worth = json.loads((out / "run.json").read_text())["worth"]
    assert worth["paid"] is False
    rows = {row["name"]: row for row in worth["rows"]}
    assert f"(MRR {max(rows['start']['mrr'], rows['builtin']['mrr']):.1f}), this run in" in worth["sentences"][0]
    assert rows["start"]["ahead"][1] < 0


@spoilt
@unpaid
def test_python_callers_are_warned(tiny: Path, loose: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Training did not pay: .builtin. as it is"):
        isotrope.train("simcse", loose, model=tiny, output=tmp_path / "run", **SHORT, **WORSE)


@pytest.fixture
def code(tmp_path: Path, topics: list[str]) -> Path:
    """Pairs in a made-up code, four words each: only training can know which word stands for which."""
    words = sorted({word for line in topics for word in line.split() if len(word) > 3 and word.isalpha()})
    rng = np.random.default_rng(0)
    plain, secret = words[: len(words) // 2], rng.permutation(words[len(words) // 2 :])
    drawn = {tuple(sorted(rng.choice(len(plain), size=4, replace=False))) for _ in range(1200)}
    lines = [" ".join(plain[i] for i in row) + "\t" + " ".join(secret[i] for i in row) for row in sorted(drawn)]
    path = tmp_path / "code.tsv"
    path.write_text("anchor\tpositive\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_run_that_helps_is_not(capsys: pytest.CaptureFixture[str], tiny: Path, code: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "batch_size": 32, "max_steps": 120, "eval_steps": 120, "learning_rate": 3e-3}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    with pytest.raises(SystemExit) as stop:
        main(["train", "simcse-supervised", str(code), "--model", str(tiny), "--output", str(tmp_path / "run"), *words])
    said = capsys.readouterr()
    assert stop.value.code == 0, said.err
    assert "this run minus it" in said.out
    assert "Training did not pay" not in said.out
    assert json.loads((tmp_path / "run" / "run.json").read_text())["worth"]["paid"] is True


def rows_of(start: float, run: float, builtin: float, words: float, spread: float = 2.0) -> list[WorthRow]:
    found = {"start": start, "this run": run, "builtin": builtin, "TF-IDF": words}
    return [
        WorthRow(
            name,
            mrr,
            mrr - 5,
            Interval(mrr - spread, mrr + spread),
            None if name == "this run" else Interval(run - mrr - spread, run - mrr + spread),
        )
        for name, mrr in found.items()
    ]


def footing(**changed: Any) -> Footing:
    given = {"method": "simcse", "start": "builtin-base", "data": "text.txt", "origin": "halves"}
    return Footing(**{**given, "judged": True, "from_builtin": True, **changed})


def test_what_is_above_start_and_builtin_paid() -> None:
    worth = Worth.of(footing(), 100, rows_of(start=30, run=50, builtin=40, words=20), {})
    assert (worth.paid, worth.sentences) == (True, [])


def test_what_was_better_without_training_is_named_with_the_command() -> None:
    (said,) = Worth.of(footing(), 100, rows_of(30, 44.5, 60.8, 20), {}).sentences
    assert said == (
        "Training did not pay: `builtin` as it is finds the other half of a held-out sentence in 55.8 % of cases "
        "(MRR 60.8), this run in 39.5 % (44.5); start from builtin: isotrope train simcse text.txt --model builtin."
    )
    (said,) = Worth.of(footing(start="my-model"), 100, rows_of(60, 44.5, 50, 20), {}).sentences
    assert said.startswith("Training did not pay: the start, my-model, finds the other half")
    assert "--model builtin" not in said
    (said,) = Worth.of(footing(from_builtin=False), 100, rows_of(30, 44.5, 60.8, 20), {}).sentences
    assert said.endswith("use builtin, or train a method that can start from it.")


def test_a_difference_within_chance_is_called_so() -> None:
    worth = Worth.of(footing(), 100, rows_of(30, 41, 40, 20), {})
    assert worth.paid is False
    assert "did not pay measurably" in worth.sentences[0]
    assert "the difference, −1.0 to +3.0 in MRR, may be chance" in worth.sentences[0]


def test_a_start_that_was_kept_is_not_held_against_itself() -> None:
    worth = Worth.of(footing(), 100, rows_of(41, 41, 30, 20, spread=0), {})
    assert worth.paid is False
    (said,) = worth.sentences
    assert said.startswith("Training did not pay: the model is the start, unchanged")
    assert "chance" not in said


def test_words_that_find_more_are_named_apart() -> None:
    worth = Worth.of(footing(origin="pairs"), 100, rows_of(44.5, 68.6, 60.8, 72.9), {})
    assert worth.paid is True
    (said,) = worth.sentences
    assert said.startswith("Shared words find more: TF-IDF finds the other text of a held-out pair in 67.9 % of cases")


def test_a_method_with_another_task_is_not_judged() -> None:
    worth = Worth.of(footing(method="mlm", judged=False), 100, rows_of(30, 20, 60, 70), {})
    assert worth.paid is None
    assert "read the figures of its own task first" in worth.sentences[0]


@unpaid
def test_pairs_search_for_the_other_side(tiny: Path, code: Path, tmp_path: Path) -> None:
    run = isotrope.train("simcse-supervised", code, model=tiny, output=tmp_path / "run", **SHORT)
    assert run.worth is not None
    assert "other text of a held-out pair among" in run.worth.measure


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_without_held_out_text_it_says_so(tiny: Path, loose: Path, tmp_path: Path) -> None:
    run = isotrope.train("simcse", loose, model=tiny, output=tmp_path / "run", **{**SHORT, "held_out": 0})
    assert run.worth is not None
    assert (run.worth.rows, run.worth.paid, len(run.held)) == ([], None, 0)
    (said,) = run.worth.sentences
    assert said.startswith("No final table: no text was held out")
    assert said.endswith("of text that it trained on.")


@unpaid
def test_a_method_from_scratch_has_no_start(loose: Path, tmp_path: Path) -> None:
    run = isotrope.train("word2vec", loose, output=tmp_path / "run", min_count=1, dimension=8, **SHORT)
    assert list(by_name(run)) == ["this run", "builtin", "TF-IDF"]
    assert run.worth is not None
    assert run.worth.left_out == {"start": "word2vec initialises its encoder from the data"}
    assert run.worth.paid is not None


def test_relations_have_no_table(samples: dict[str, Path], tmp_path: Path) -> None:
    run = isotrope.train("lre", samples["relations"], output=tmp_path / "run", batch_size=16, max_steps=2, eval_steps=2)
    assert run.worth is not None
    assert run.worth.rows == []
    assert "names in relations" in run.worth.sentences[0]


@unpaid
def test_builtin_as_the_start_stands_there_once(loose: Path, tmp_path: Path) -> None:
    run = isotrope.train("simcse", loose, model="builtin", output=tmp_path / "run", **{**SHORT, "max_steps": 1})
    assert list(by_name(run)) == ["start", "this run", "TF-IDF"]
    assert run.worth is not None
    assert run.worth.left_out == {"builtin": "it is the start"}


def test_it_can_be_switched_off(tiny: Path, loose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**SHORT, "max_steps": 1, "learning_rate": 1e-9}
    with pytest.warns(UserWarning, match="did not improve"):
        run = isotrope.train("simcse", loose, model=tiny, output=tmp_path / "off", final_table=False, **settings)
    assert run.worth is None
    monkeypatch.setenv("ISOTROPE_FINAL_TABLE", "0")
    with pytest.warns(UserWarning, match="did not improve"):
        run = isotrope.train("simcse", loose, model=tiny, output=tmp_path / "unset", **settings)
    assert run.worth is None
    assert "worth" not in json.loads((run.folder / "run.json").read_text())


def test_no_text_stands_twice_on_one_side(tiny: Path) -> None:
    rows = [("a b", "c d"), ("a b", "e f"), ("g h", "c d"), ("i j", "i j"), ("k l", "m n")]
    corpus = open_corpus(rows, ("pairs",), isotrope.load(tiny).text_tokenizer)
    assert held_out_pairs(corpus, np.arange(5)) == Pairs("pairs", ["a b", "k l"], ["c d", "m n"])


def test_vectors_that_are_no_numbers_find_nothing() -> None:
    broken = np.full((5, 3), np.nan)
    assert partner_ranks(broken, broken).tolist() == [5.0] * 5
    assert partner_ranks(np.ones((5, 3)), np.ones((5, 3))).tolist() == [3.0] * 5
    scores = np.array([[0.5, np.nan, 0.1], [0.2, 0.9, 0.3], [0.9, 0.2, 0.4]])
    assert ranks_of_own(scores).tolist() == [2.0, 1.0, 2.0]


def test_a_broken_start_is_left_out_with_the_reason(tiny: Path, loose: Path, trained: Run, tmp_path: Path) -> None:
    import torch

    from isotrope.evaluation.worth import weigh
    from isotrope.training.plan import make_plan

    broken = isotrope.load(tiny)
    with torch.no_grad():
        next(broken.parameters()).fill_(float("nan"))
    worth = weigh(make_plan("simcse", loose, broken, tmp_path / "other", **SHORT), trained)
    assert [row.name for row in worth.rows] == ["this run", "builtin", "TF-IDF"]
    assert set(worth.left_out) == {"start"}
    assert "NaN or infinite vectors" in worth.left_out["start"]


def test_a_character_is_a_word_where_there_are_no_spaces() -> None:
    scores = lexical_scores(["今天天气很好", "明天下雨"], ["今天天气"], ["天气很好", "下雨了"])
    assert scores[0, 0] > 0.5
    assert scores[0, 1] == 0
    assert lexical_scores(["the of"], ["the"], ["of"]).tolist() == [[0.0]]
