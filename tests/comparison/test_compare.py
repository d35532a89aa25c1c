"""Methods on equal footing:

each run is the run that `train` makes, none is made twice, and one that fails stops no other.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.comparison import one_run
from isotrope.comparison.comparison_table import Comparison
from isotrope.comparison.judgement import Failure
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.simcse import SupervisedSimCSE

Short = dict[str, Any]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def same(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_a_run_is_the_run_that_train_makes(short: Short, sentences: Path, triples: Path, tmp_path: Path) -> None:
    found = isotrope.compare([sentences, triples], "simcse,simcse-supervised", tmp_path / "all", **short)
    assert not found.failures
    assert [(run.name, run.seed) for run in found.runs] == [
        (name, seed) for name in ("simcse", "simcse-supervised") for seed in (42, 43)
    ]
    settings = {name: value for name, value in short.items() if name != "seeds"}
    alone = isotrope.train(
        "simcse-supervised", triples, output=tmp_path / "alone", seed=43, held_out_seed=42, **settings
    )
    assert same(tmp_path / "all" / "simcse-supervised-seed-43", alone.folder)
    assert not same(tmp_path / "all" / "simcse-supervised-seed-42", alone.folder)
    (judged,) = [run for run in found.runs if (run.name, run.seed) == ("simcse-supervised", 43)]
    kept = next(line for line in alone.history if "evaluation" in line and line["step"] == alone.selected_step)
    assert judged.measures["retrieval_mrr"] == kept["evaluation"]["retrieval_mrr"]
    assert judged.measures["seconds"] > 0


def test_every_method_starts_from_the_same_numbers_and_the_start_is_the_first_row(
    short: Short, sentences: Path, tmp_path: Path
) -> None:
    found = isotrope.compare(
        sentences,
        ["simcse", "hot=simcse", "mlm", "high=simcse"],
        tmp_path / "all",
        own={"hot": {"temperature": "0.5"}, "high": {"pooling": "max"}},
        **{**short, "seeds": 1},
    )
    first, hot, mlm, high = found.runs
    assert first.before == hot.before != high.before
    assert first.before.items() <= mlm.before.items()  # which says how its own task goes, too
    assert isotrope.load(tmp_path / "all" / "high-seed-42" / "model").pooling.name == "max"
    assert "high: simcse, pooling max." in found.notes()
    assert [row.name for row in found.rows()] == ["start", "simcse", "hot", "mlm", "high"]
    assert found.rows()[0].measures["retrieval_mrr"] == [first.before["retrieval_mrr"]]
    assert hot.facts.settings["temperature"] == 0.5
    assert first.facts.settings["temperature"] == 0.05
    assert not same(tmp_path / "all" / "simcse-seed-42", tmp_path / "all" / "hot-seed-42")
    assert {path.name for path in (tmp_path / "all" / "mlm-seed-42").iterdir()} == {
        "judgement.json",
        "metrics.jsonl",
        "model",
        "run.json",
    }


def test_each_text_has_its_own_start_where_nothing_else_judges(
    short: Short, sentences: Path, triples: Path, tmp_path: Path
) -> None:
    found = isotrope.compare([sentences, triples], "simcse-supervised,simcse", tmp_path / "all", **short)
    assert [(row.name, row.text) for row in found.rows()] == [
        ("start", "triples.tsv"),
        ("simcse-supervised", "triples.tsv"),
        ("start", "sentences.txt"),
        ("simcse", "sentences.txt"),
    ]
    assert [len(row.measures["alignment"]) for row in found.rows()] == [1, 2, 1, 2]  # the start is one for all seeds


def test_the_benchmarks_judge_where_they_are_given(
    short: Short, sentences: Path, benchmarks: Path, tmp_path: Path, tiny: Path
) -> None:
    dev = benchmarks / "sts" / "stsb.test.tsv"
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", data_dir=benchmarks, eval_data=dev, **short)
    start, row = found.rows()
    expected = isotrope.evaluate(tiny, data_dir=benchmarks).scores["sts"]
    assert start.measures["sts_average"] == [pytest.approx(expected["average"]["spearman"])]
    assert start.measures["dev_spearman"] == [pytest.approx(expected["STS-B"]["spearman"])]
    assert "seconds" not in start.measures
    trained = isotrope.evaluate(tmp_path / "all" / "simcse-seed-43" / "model", data_dir=benchmarks).scores["sts"]
    assert row.measures["sts_average"][1] == pytest.approx(trained["average"]["spearman"], abs=0.01)
    assert row.measures["effective_rank"][1] == pytest.approx(trained["geometry"]["effective_rank"], rel=1e-3)
    assert list(row.measures) == [
        "sts_average", "sts_b", "dev_spearman", "alignment", "uniformity", "effective_rank", "seconds",
    ]  # fmt: skip
    assert "sts-cosine-v1, aggregation all" in found.table()
    assert "Spearman on stsb.test.tsv" in found.markdown()


def test_queries_with_passages_choose_by_their_mrr_and_the_table_says_so(
    short: Short, sentences: Path, tmp_path: Path
) -> None:
    texts = [line for line in sentences.read_text(encoding="utf-8").splitlines() if line][:12]
    dev = tmp_path / "questions.tsv"
    rows = [f"{query}\t{passage}" for query, passage in zip(texts[::2], texts[1::2], strict=True)]
    dev.write_text("\n".join(["anchor\tpositive", *rows]) + "\n", encoding="utf-8")
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", eval_data=dev, **short)
    assert "chosen by MRR of the queries of questions.tsv;" in found.table()
    assert "Spearman" not in found.table()
    again = isotrope.compare(sentences, "simcse", tmp_path / "all", eval_data=dev, **short)  # read back
    assert again.markdown() == found.markdown()


def test_a_finished_run_is_not_made_again_and_a_new_method_joins(
    short: Short, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = isotrope.compare(sentences, "simcse", tmp_path / "all", **short)
    trained: list[str] = []
    plain = one_run.make_plan

    def counting(method: str, *rest: Any, **named: Any) -> Any:
        trained.append(method)
        return plain(method, *rest, **named)

    monkeypatch.setattr(one_run, "make_plan", counting)
    again = isotrope.compare(sentences, "simcse", tmp_path / "all", **short)
    assert trained == []
    assert again.runs == once.runs
    joined = isotrope.compare(sentences, "mlm,simcse", tmp_path / "all", **short)
    assert trained == ["mlm", "mlm"]
    assert [row.name for row in joined.rows()] == ["start", "mlm", "simcse"]
    assert Comparison.read(tmp_path / "all" / "comparison.json").table() == joined.table()


def test_an_interrupted_run_goes_on_bit_for_bit(
    short: Short, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {**short, "seeds": 2, "max_steps": 6}
    isotrope.compare(sentences, "simcse", tmp_path / "whole", **whole)
    steps = iter(range(1, 100))

    def interrupt(self: Combined, representations: Any) -> None:
        if next(steps) == 8:  # the second step of the second run
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt, match=rf"the same call with output {tmp_path / 'cut'} goes on"):
            isotrope.compare(sentences, "simcse", tmp_path / "cut", **whole)
    assert (tmp_path / "cut" / "simcse-seed-43" / "checkpoints" / "step-2").is_dir()
    assert len(Comparison.read(tmp_path / "cut" / "comparison.json").runs) == 1
    found = isotrope.compare(sentences, "simcse", tmp_path / "cut", **whole)
    assert len(found.runs) == 2
    assert same(tmp_path / "whole" / "simcse-seed-43", tmp_path / "cut" / "simcse-seed-43")


def test_a_test_file_that_was_changed_since_is_other_terms(short: Short, tmp_path: Path) -> None:
    train, test = tmp_path / "train.tsv", tmp_path / "test.tsv"
    lines = [f"{number % 2}\tsentence number {number} of {number % 5}" for number in range(64)]
    train.write_text("\n".join(["label\tsentence", *lines]) + "\n", encoding="utf-8")
    test.write_text("\n".join(["label\tsentence", *lines[:9]]) + "\n", encoding="utf-8")
    chosen = {**short, "seeds": 1, "suite": "own", "own": {"fine-tune": {"test": str(test)}}}
    first = isotrope.compare(train, "fine-tune", tmp_path / "all", **chosen)
    assert isotrope.compare(train, "fine-tune", tmp_path / "all", **chosen).runs == first.runs
    test.write_text("\n".join(["label\tsentence", *lines[9:20]]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"under other terms \(files of the settings\): test was"):
        isotrope.compare(train, "fine-tune", tmp_path / "all", **chosen)


def test_a_comparison_that_was_killed_before_its_first_file_begins_again(
    short: Short, sentences: Path, tmp_path: Path
) -> None:
    """What it had held out by then may be that of another text, and is not used."""
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "held_out.json").write_text("[]", encoding="utf-8")
    assert len(isotrope.compare(sentences, "simcse", tmp_path / "all", **{**short, "seeds": 1}).runs) == 1


def test_other_terms_in_the_same_folder_are_refused(short: Short, sentences: Path, tmp_path: Path) -> None:
    isotrope.compare(sentences, "simcse", tmp_path / "all", **{**short, "seeds": 1})
    with pytest.raises(InputError, match=r"under other terms \(settings\): learning_rate was 0.001 and is 0.01"):
        isotrope.compare(sentences, "simcse", tmp_path / "all", **{**short, "learning_rate": 0.01})
    sentences.write_text(sentences.read_text(encoding="utf-8") + "one more line\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"under other terms \(data\)"):
        isotrope.compare(sentences, "simcse", tmp_path / "all", **short)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"holds something else \(chapter.txt\)"):
        isotrope.compare(sentences, "simcse", tmp_path / "thesis", **short)


@pytest.mark.parametrize("mistake", [InputError("k is too large."), RuntimeError("shapes do not match")])
def test_a_method_that_fails_is_reported_and_the_others_go_on(
    short: Short, sentences: Path, triples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: Exception
) -> None:
    def broken(self: SupervisedSimCSE, *_: Any) -> None:
        raise mistake

    monkeypatch.setattr(SupervisedSimCSE, "represent", broken)
    found = isotrope.compare(
        [sentences, triples], "simcse-supervised,simcse", tmp_path / "all", **{**short, "seeds": 1}
    )
    (failure,) = found.failures
    assert (failure.name, failure.seed) == ("simcse-supervised", 42)
    assert str(mistake) in failure.sentence
    assert [run.name for run in found.runs] == ["simcse"]
    assert "simcse-supervised, seed 42, failed: " in found.table()
    trace = tmp_path / "all" / "errors" / "simcse-supervised-seed-42.txt"
    assert trace.is_file() == isinstance(mistake, RuntimeError)
    monkeypatch.undo()
    assert not isotrope.compare(
        [sentences, triples], "simcse-supervised,simcse", tmp_path / "all", **{**short, "seeds": 1}
    ).failures


def test_processes_do_what_one_does(short: Short, sentences: Path, tmp_path: Path) -> None:
    alone = isotrope.compare(sentences, "simcse", tmp_path / "alone", **short)
    parallel = isotrope.compare(sentences, "simcse", tmp_path / "parallel", parallel=2, **short)
    assert not parallel.failures
    first, second = ({run.seed: run.measures["alignment"] for run in found.runs} for found in (alone, parallel))
    assert first == pytest.approx(second, rel=1e-3)  # threads are shared out, so sums may be taken in another order
    told = json.loads((tmp_path / "parallel" / "comparison.json").read_text(encoding="utf-8"))
    assert told["rows"][1]["measures"]["alignment"]["values"] == [second[42], second[43]]


class Deadly:
    """Ends the process that receives it."""

    label = "deadly"
    seed = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (3,)


def test_a_process_that_dies_costs_its_own_run_only() -> None:
    from isotrope.comparison.workers import run_all

    found = list(run_all([Deadly(), Deadly(), Deadly()], parallel=2))  # type: ignore[list-item]
    assert len(found) == 3
    assert all(isinstance(outcome, Failure) for outcome in found)
    assert all((one.name, one.seed) == ("deadly", 1) for one in found)
    assert all("ended by itself (code 3)" in one.sentence for one in found)
