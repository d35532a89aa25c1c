"""The registry of suites: what is listed, what is refused before a model is loaded, and how often a file is read."""

from __future__ import annotations

import gc
import gzip
from pathlib import Path

import pytest

import isotrope
from isotrope.data import text_lines
from isotrope.errors import InputError
from isotrope.evaluation import suites
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.evaluation.sts import TASKS
from isotrope.evaluation.suite import Options, Suite, SuiteCard, find_suite, registry

NOBODY = "no/such/model"  # what is refused for its own sake is refused before this is


@pytest.fixture
def sts_folder(tmp_path: Path) -> Path:
    (tmp_path / "sts").mkdir()
    rows = [f"part{row % 2}\ta b {row}\tb c {row}\t{row % 6}" for row in range(12)]
    for name in (*TASKS.values(), "stsb.dev"):
        with gzip.open(tmp_path / "sts" / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(["subset\tsentence1\tsentence2\tscore", *rows]) + "\n")
    return tmp_path


def test_every_suite_has_a_card() -> None:
    cards = {card.name: card for card in suites()}
    assert {"sts", "transfer", "geometry", "counterfactual"} <= set(cards)
    assert all(card.title and card.protocol and "seeds" in card.takes for card in cards.values())
    assert len({card.protocol for card in cards.values()}) == len(cards)
    assert "aggregation" in cards["sts"].takes
    names = set(Options.__dataclass_fields__)
    assert all(set(card.takes) <= names for card in cards.values())


@pytest.mark.parametrize(
    ("suite", "given", "said"),
    [
        ("stss", {}, "Unknown suite 'stss'; did you mean 'sts'"),
        ("bitext", {"texts": ["a", "b"]}, "The bitext suite takes no texts"),
        (
            "bitext",
            {"columns": ["a"]},
            "The bitext suite takes no columns; leave it out, or choose answers, clustering, counterfactual, geometry, "
            "linear, retrieval or sts",
        ),
        ("sts", {"aggregation": "sum"}, "Unknown aggregation 'sum'"),
        ("transfer", {"aggregation": "mean"}, "The transfer suite takes no aggregation; leave it out, or choose sts"),
        ("geometry", {"aggregation": "wmean", "texts": ["a"]}, "The geometry suite takes no aggregation"),
        ("geometry", {}, "give texts, or data_dir"),
        ("sts", {}, "give data_dir, or set ISOTROPE_DATA"),
        ("transfer", {"data_dir": "."}, r"mr\.tsv\.gz is missing"),
        ("counterfactual", {"data_dir": "."}, r"cad_snli\.train\.tsv\.gz: no such file"),
    ],
)
def test_what_cannot_work_is_refused_before_the_model_is_loaded(
    suite: str, given: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        isotrope.evaluate(NOBODY, suite, **given)  # type: ignore[arg-type]


def test_each_file_is_read_once(tiny: Path, sts_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    plain = text_lines.opened
    monkeypatch.setattr(text_lines, "opened", lambda path: opened.append(path.name) or plain(path))
    isotrope.evaluate(tiny, "sts", sts_folder)
    read = [name for name in opened if name.endswith(".tsv.gz")]
    assert sorted(read) == sorted(f"{name}.tsv.gz" for name in (*TASKS.values(), "stsb.dev"))


def test_pairs_come_with_their_subsets(sts_folder: Path, tmp_path: Path) -> None:
    pairs = read_pairs(sts_folder / "sts" / "sts12.test.tsv.gz")
    assert pairs.subsets == ["part0", "part1"] * 6
    assert pairs.gold.tolist() == [row % 6 for row in range(12)]
    plain = tmp_path / "plain.csv"
    plain.write_text("text1,text2,score\na,b,1\n,c,2\nd,e,\nf,g,3\n", encoding="utf-8")
    assert read_pairs(plain).first == ["a", "f"]
    assert read_pairs(plain).subsets == ["", ""]


def test_a_summary_is_what_the_scores_say(tiny: Path, sts_folder: Path, topics: list[str]) -> None:
    found = isotrope.evaluate(tiny, "sts", sts_folder)
    short = find_suite("sts")().summary(found)
    assert short["sts_average"] == found.scores["sts"]["average"]["spearman"]
    assert list(short) == ["sts_average", "sts_b", "alignment", "uniformity", "effective_rank"]
    shape = isotrope.evaluate(tiny, "geometry", texts=topics[:40])
    assert find_suite("geometry")().summary(shape)["mean_cosine"] == shape.scores["geometry"]["text"]["mean_cosine"]


def test_a_class_with_a_card_is_all_that_a_suite_needs() -> None:
    card = SuiteCard("own", "Own", "own-v1", ())
    own = type("Own", (Suite,), {"card": card, "__module__": "isotrope.evaluation.own"})
    try:
        registry.cache_clear()
        assert find_suite("own") is own
    finally:
        del own
        registry.cache_clear()
        gc.collect()
    assert "own" not in registry()
