"""The table: means, deviations, order, and the three forms it is written in."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import isotrope
from isotrope.comparison.comparison_table import Comparison
from isotrope.comparison.footing import Footing, Particulars
from isotrope.comparison.judgement import Failure, Judgement, TrainedOn
from isotrope.comparison.terms import RunFacts, Start
from isotrope.errors import InputError

TERMS = Footing(
    model="builtin-base",
    settings={"max_steps": 200, "batch_size": 64},
    seeds=[1, 2, 3],
    eval_data=["data/dev.tsv"],
    protocol="sts-cosine-v1, aggregation all",
    own={"hot": Particulars("simcse", {"temperature": "0.5"})},
)


def run(name: str, seed: int, average: float, seconds: float) -> Judgement:
    return Judgement(
        name=name,
        seed=seed,
        data=TrainedOn("texts/news.txt", "sentences", 9),
        measures={"sts_average": average, "seconds": seconds},
        before={"spearman": 55.5},
        selected_step=200,
        warnings=["Training did not improve."] if average < 50 else [],
        facts=RunFacts("simcse", "a digest", Start("a fingerprint", None), {"seed": seed}, {"test": "another digest"}),
    )


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    runs = [
        run("simcse", 3, 66.0, 5.0),
        run("hot", 1, 40.0, 4.0),
        run("simcse", 1, 60.0, 3.0),
        run("simcse", 2, 63.0, 4.0),
    ]
    failures = [Failure("hot", 2, "The loss is not a number at step 3.")]
    return Comparison(TERMS, ["hot", "simcse"], {"sts_average": 52.0}, runs, failures, tmp_path)


def test_a_row_named_after_its_method_does_not_name_it_twice(found: Comparison) -> None:
    own = {"simcse": Particulars("simcse", {"adam_beta2": 0.9}), "hot": Particulars("simcse", {"temperature": 0.5})}
    said = replace(TERMS, own=own).sentences()
    assert said[-2:] == ["simcse: adam_beta2 0.9.", "hot: simcse, temperature 0.5."]


def test_the_folder_of_a_comparison_is_read_back(found: Comparison, tmp_path: Path) -> None:
    found.write()
    assert isotrope.compare(tmp_path) == found == isotrope.compare(tmp_path / "comparison.json")


def test_rows_are_the_start_and_the_methods_as_named_with_seeds_in_order(found: Comparison) -> None:
    assert [(row.name, row.measures["sts_average"]) for row in found.rows()] == [
        ("start", [52.0]),
        ("hot", [40.0]),
        ("simcse", [60.0, 63.0, 66.0]),
    ]
    assert found.rows()[0].measures["dev_spearman"] == [55.5]
    assert found.columns == ["sts_average", "dev_spearman", "seconds"]


def test_cells_are_mean_and_sample_deviation_and_one_seed_has_none(found: Comparison) -> None:
    start, hot, simcse = found.rows()
    assert simcse.cells(["sts_average", "seconds"]) == ["63.00 ± 3.00", "4.0 ± 1.0"]
    assert hot.cells(["sts_average", "dev_spearman"]) == ["40.00", ""]
    assert start.cells(["seconds"]) == [""]


def test_the_table_says_the_terms_and_what_went_wrong(found: Comparison) -> None:
    text = found.table()
    assert "63.00 ± 3.00" in text
    for sentence in (
        "over seeds 1, 2, 3; from builtin-base, max_steps 200, batch_size 64.",
        "chosen by Spearman on dev.tsv; judged by sts-cosine-v1, aggregation all",
        "hot: simcse, temperature 0.5.",
        "hot, seed 2, failed: The loss is not a number at step 3.",
        "hot, seed 1: Training did not improve.",
    ):
        assert sentence in text


def test_markdown_is_a_table_with_its_terms_beneath(found: Comparison) -> None:
    lines = found.markdown().splitlines()
    assert lines[0] == "| method | STS average | from start | dev | seconds |"
    assert lines[2] == "| start | 52.00 |  | 55.50 |  |"
    assert lines[3] == "| `hot` | 40.00 | -12.00 |  | 4.0 |"
    assert lines[4] == "| `simcse` | 63.00 ± 3.00 | +11.00 ± 3.00 |  | 4.0 ± 1.0 |"
    assert {line.count("|") for line in lines[:5]} == {6}
    assert lines[6].startswith("- Mean ± standard deviation")
    assert "- Trained on news.txt." in lines


def test_the_text_is_a_column_where_there_are_several(found: Comparison) -> None:
    other = replace(found.runs[1], data=TrainedOn("texts/pairs.tsv", "pairs", 9))
    lines = replace(found, runs=[found.runs[0], other]).markdown().splitlines()
    assert lines[0] == "| method | text | STS average | from start | dev | seconds |"
    assert lines[3].startswith("| `hot` | pairs.tsv | 40.00")
    assert not any("Trained on" in line for line in lines)


def test_three_seeds_give_a_verdict_on_the_difference_and_two_give_none(found: Comparison) -> None:
    """Differences 20, 21, 22: mean 21, Student's interval 21 ± 4.303 / √3."""
    hot = [run("hot", seed, 40.0 + 2 * seed, 4.0) for seed in (1, 2, 3)]
    simcse = [run("simcse", seed, 59.0 + 3 * seed, 4.0) for seed in (1, 2, 3)]
    certain = replace(found, runs=[*hot, *simcse])
    said = (
        "simcse against hot, seed by seed: +21.00 (+18.52 … +23.48) STS average: higher, and the interval leaves 0 out."
    )
    assert certain.verdicts() == [said]
    assert certain.notes()[0] == said
    assert replace(found, runs=[*hot[:2], *simcse]).verdicts() == []
    doubtful = [run("simcse", seed, average, 4.0) for seed, average in ((1, 30.0), (2, 60.0), (3, 50.0))]
    (sentence,) = replace(found, runs=[*hot, *doubtful]).verdicts()
    assert sentence.endswith("STS average: the seeds do not show a difference.")


def test_verdicts_on_several_methods_are_corrected_for_their_number(found: Comparison) -> None:
    """Differences 1, 2, 1.5 of one method: p = 0.035 by itself (t = 3√3), which two more methods leave undecided."""
    hot = [run("hot", seed, 40.0, 4.0) for seed in (1, 2, 3)]
    near = [run("near", seed, 40.0 + more, 4.0) for seed, more in ((1, 1.0), (2, 2.0), (3, 1.5))]
    others = [run(name, seed, 40.0 + more, 4.0) for name in "ab" for seed, more in ((1, 1.0), (2, -1.0), (3, 0.5))]
    far = [run("far", seed, 59.0 + seed / 2, 4.0) for seed in (1, 2, 3)]
    (alone,) = replace(found, names=["hot", "near"], runs=[*hot, *near]).verdicts()
    assert alone.endswith("STS average: higher, and the interval leaves 0 out.")
    first, *_, last = replace(
        found, names=["hot", "near", "a", "b", "far"], runs=[*hot, *near, *others, *far]
    ).verdicts()
    assert first.endswith(
        "the interval leaves 0 out, but with Holm's correction for 4 methods the seeds do not show a difference "
        "(p = 0.105)."
    )
    assert "higher, and the interval leaves 0 out, also with Holm's correction for 4 methods (p = 0.00" in last


def test_a_warning_that_differs_in_its_figures_alone_is_said_once_a_method(found: Comparison) -> None:
    told = [f"Training did not improve: 0.016{seed} after." for seed in (1, 2)]
    runs = [replace(run("hot", seed, 60.0, 4.0), warnings=[told[seed - 1], "Other."]) for seed in (1, 2)]
    text = replace(found, runs=runs).table()
    assert "hot, seeds 1, 2: Training did not improve: 0.0161 after." in text
    assert "hot, seeds 1, 2: Other." in text
    assert told[1] not in text


def test_the_mrr_of_the_only_text_is_not_shown_twice(found: Comparison) -> None:
    def measured(own: float) -> Comparison:
        one = replace(run("hot", 1, 60.0, 4.0), measures={"common_mrr": 14.5, "retrieval_mrr": own})
        return replace(found, start={}, runs=[one])

    assert measured(0.145).columns == ["common_mrr", "dev_spearman"]
    assert measured(0.2).columns == ["common_mrr", "retrieval_mrr", "dev_spearman"]


def test_what_is_written_is_read_again(found: Comparison, tmp_path: Path) -> None:
    found.write()
    kept = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert kept["rows"][2]["measures"]["sts_average"] == {"mean": 63.0, "deviation": 3.0, "values": [60.0, 63.0, 66.0]}
    assert kept["rows"][1]["measures"]["sts_average"]["deviation"] is None
    assert kept["rows"][2]["gains"] == {"sts_average": {"mean": 11.0, "deviation": 3.0, "values": [8.0, 11.0, 14.0]}}
    assert kept["rows"][0]["gains"] == {}
    assert kept["runs"][0]["facts"]["files of the settings"] == {"test": "another digest"}
    assert Comparison.read(tmp_path / "comparison.json") == found
    for one in kept["runs"]:
        one["data"]["kind"] = one["data"].pop("record_type")
    (tmp_path / "comparison.json").write_text(json.dumps(kept), encoding="utf-8")
    assert Comparison.read(tmp_path / "comparison.json") == found  # as earlier versions wrote it


def test_a_file_that_is_no_comparison_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such comparison"):
        Comparison.read(tmp_path / "comparison.json")
    for content in ("{", "[]", '{"terms": {}}'):
        (tmp_path / "comparison.json").write_text(content)
        with pytest.raises(InputError, match="not what `isotrope compare` writes"):
            Comparison.read(tmp_path / "comparison.json")


def test_a_comparison_without_runs_is_still_a_table(tmp_path: Path) -> None:
    empty = Comparison(replace(TERMS, eval_data=[]), ["simcse"], folder=tmp_path)
    assert empty.rows() == []
    assert "the label-free score" in empty.table()


@pytest.mark.parametrize("seeds", [[1], [1, 2, 3, 4, 5]])
def test_a_comparison_whose_searches_all_failed_is_still_a_table(tmp_path: Path, seeds: list[int]) -> None:
    """No method is left to be named, while the benchmarks have judged the start."""
    failures = [Failure("simcse", 1, "none of the 2 trials of its search ended")]
    found = Comparison(replace(TERMS, seeds=seeds), [], {"sts_average": 52.0}, [], failures, tmp_path)
    found.write()
    assert "52.00" in found.table()
    assert "none of the 2 trials" in found.table()


def test_a_measure_that_is_no_number_costs_neither_the_table_nor_the_json(found: Comparison) -> None:
    """The correlation of a collapsed encoder is nan, a perplexity may be infinite; the other runs are not lost."""
    runs = [run("hot", seed, math.nan if seed == 1 else 40.0, 1.0) for seed in (1, 2, 3)]
    runs += [run("simcse", seed, math.inf if seed == 2 else 60.0, 1.0) for seed in (1, 2, 3)]
    many = replace(found, runs=runs, terms=replace(TERMS, seeds=[1, 2, 3, 4, 5]))
    many.write()
    assert many.folder is not None
    text = (many.folder / "comparison.json").read_text(encoding="utf-8")
    kept = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert kept["runs"][0]["measures"]["sts_average"] is None
    again = Comparison.read(many.folder / "comparison.json")
    assert math.isnan(again.runs[0].measures["sts_average"])
    (verdict,) = again.verdicts()
    assert "what a run measured is not a number, so nothing can be said" in verdict
    assert "nan" in again.table()
