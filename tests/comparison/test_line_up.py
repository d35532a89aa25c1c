"""Who is compared on which text, and what is refused before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.comparison.line_up import ask_methods, enter, labelled, plan_comparison
from isotrope.comparison.method_terms import loop_settings
from isotrope.comparison.terms import Contestant, RunFacts
from isotrope.errors import InputError
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.method_registry import registry


@pytest.fixture
def record_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods with all sorts of needs."""
    cards = [
        Card("talk", "Talk", "", 2026, "dialogues"),
        Card("either", "Either", "", 2026, "triples", accepts=("pairs", "sentences")),
        Card("book", "Book", "", 2026, "documents"),
    ]
    made = {card.name: type(card.title, (Method,), {"card": card}) for card in cards}
    monkeypatch.setattr("isotrope.methods.frame.method_registry.registry", lambda: {**registry(), **made})


def contestants(methods: str, data: Any, own: dict[str, dict[str, Any]]) -> list[Contestant]:
    return enter(ask_methods(labelled(methods.split(",")), own, {}), data)


def texts(methods: str, data: Any) -> dict[str, str]:
    return {one.label: Path(one.data).name for one in contestants(methods, data, {})}


@pytest.mark.usefixtures("record_types")
def test_each_method_takes_the_first_file_of_the_record_type_it_needs(
    sentences: Path, triples: Path, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("query,answer\na,b\n")
    other = tmp_path / "other.txt"
    other.write_text("hello\n")
    assert texts("simcse,simcse-supervised,book", [sentences, other, triples]) == {
        "simcse": "sentences.txt",
        "simcse-supervised": "triples.tsv",
        "book": "sentences.txt",
    }
    assert texts("simcse,either", [other, sentences, pairs]) == {"simcse": "other.txt", "either": "pairs.csv"}
    assert texts("either", [pairs, triples]) == {"either": "triples.tsv"}  # what it needs goes before what it accepts
    assert texts("either", [sentences]) == {"either": "sentences.txt"}


@pytest.mark.usefixtures("record_types")
def test_a_file_may_be_given_a_record_type(sentences: Path, tmp_path: Path) -> None:
    talks = tmp_path / "talks.txt"
    talks.write_text("hello\nhello you\n")
    expected = {"talk": "talks.txt", "simcse": "sentences.txt"}
    assert texts("talk,simcse", [sentences, f"dialogues={talks}"]) == expected
    assert texts("talk,simcse", [f"dialogues={talks}", sentences]) == expected  # and is then nothing else
    assert texts("talk,simcse", {"dialogues": talks, "sentences": sentences}) == expected
    with pytest.raises(InputError, match="plain text cannot be triples"):
        texts("talk", [f"triples={talks}"])


def test_a_method_without_its_text_says_what_it_needs_and_what_there_is(sentences: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.tsv"
    table.write_text("text\tlabel\na\tb\n")
    with pytest.raises(InputError) as caught:
        texts("simcse,simcse-supervised", [sentences, table])
    assert str(caught.value) == (
        "simcse-supervised needs triples or pairs, and none of the files is that: sentences.txt (plain text), "
        "labels.tsv (a table with columns text, label); add one, with columns such as anchor/positive/negative."
    )


@pytest.mark.parametrize(
    ("methods", "own", "said"),
    [
        ("", {}, "Unusable label ''"),
        ("simsce", {}, "did you mean 'simcse'"),
        ("hot one=simcse", {}, "Unusable label 'hot one'"),
        ("a=simcse,a=moco", {}, "Two methods have the label 'a': simcse and moco"),
        ("simcse,simcse", {}, "simcse is named twice; give one of the two a label, as in other=simcse"),
        ("simcse", {"moco": {"queue": 3}}, "'moco', which is not compared"),
        ("simcse", {"simcse": {"temprature": 3}}, "did you mean 'temperature'"),
        ("simcse", {"simcse": {"temperature": "-1"}}, "must be above 0"),
        ("simcse", {"simcse": {"max-steps": 3}}, "max_steps is the same for every method"),
        ("simcse", {"simcse": {"pooling": "meen"}}, "did you mean 'mean'"),
        ("simcse", {"simcse": {"seed": 3}}, "seed is the same for every method"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    sentences: Path, methods: str, own: dict[str, dict[str, Any]], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        contestants(methods, sentences, own)


def test_settings_of_the_loop_are_for_all_and_those_of_methods_are_not() -> None:
    assert loop_settings({"batch-size": "32"}) == {"max_steps": 200, "batch_size": "32"}
    assert loop_settings({"max_steps": 7})["max_steps"] == 7
    assert loop_settings({"epochs": 2}) == {"epochs": 2, "max_steps": None}
    assert loop_settings({}, budget="1.5m") == {"max_seconds": 90.0, "max_steps": None}
    with pytest.raises(InputError, match=r"--set [a-z-]+\.temperature=VALUE"):
        loop_settings({"temperature": 0.1})
    with pytest.raises(InputError, match="did you mean 'batch_size'"):
        loop_settings({"batch_sise": 3})
    with pytest.raises(InputError, match="batch_size must be at least 2"):
        loop_settings({"batch_size": 0})


def test_no_data_and_no_seeds_are_refused(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No data"):
        isotrope.compare([], "simcse", tmp_path / "a")
    with pytest.raises(InputError, match="no such file"):
        isotrope.compare("nowhere.txt", "simcse", tmp_path / "a")
    with pytest.raises(InputError, match="at least 1"):
        isotrope.compare(sentences, "simcse", tmp_path / "a", seeds=0)
    with pytest.raises(InputError, match=r"seeds is a whole number, how many there are, not \[1\]"):
        isotrope.compare(sentences, "simcse", tmp_path / "a", seeds=[1])  # type: ignore[arg-type]
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"methods": "simsce"}, "did you mean 'simcse'"),
        ({"methods": []}, "No method was named"),
        ({"batch_size": 0}, "batch_size must be at least"),
        ({"own": {"simcse": {"temprature": 3}}}, "did you mean 'temperature'"),
        ({"pooling": "meen"}, "did you mean 'mean'"),
        ({"suite": "stss"}, "Unknown suite of a comparison 'stss'"),
        ({"suite": "sts"}, "give data_dir"),
        ({"data_dir": "nowhere"}, "no such folder of evaluation data"),
        ({"aggregation": "al"}, "did you mean 'all'"),
        ({"eval_data": "nowhere.tsv"}, "nowhere.tsv: no such file"),
        ({"output": "taken.txt"}, "a file stands where the comparison's folder should be; choose another output"),
        ({"output": "taken.txt/deeper"}, "a file stands where the comparison's folder should be"),
        ({"output": "thesis"}, r"holds something else \(chapter.txt\)"),
        ({"parallel": 0}, "at least 1"),
    ],
)
def test_a_plan_is_refused_before_data_and_model_are_touched(
    given: dict[str, Any], said: str, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.txt").write_text("a file")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    before = sorted(tmp_path.rglob("*"))
    for data in (sentences, "not_even_there.txt"):
        with pytest.raises(InputError, match=said):
            plan_comparison(**{"data": data, "methods": "simcse", "model": "no/such/model", **given})
    assert sorted(tmp_path.rglob("*")) == before


def test_a_plan_has_a_task_for_each_row_and_seed_and_settings_resolved(sentences: Path, tmp_path: Path) -> None:
    plan = plan_comparison(
        sentences,
        "simcse,hot=simcse",
        tmp_path / "all",
        seeds=2,
        own={"hot": {"temperature": "0.5"}},
        seed=7,
    )
    tasks = plan.tasks("a fingerprint")
    assert [task.name for task in tasks] == ["simcse-seed-7", "simcse-seed-8", "hot-seed-7", "hot-seed-8"]
    facts = tasks[3].facts()
    assert (facts.settings["temperature"], facts.settings["seed"], facts.settings["max_steps"]) == (0.5, 8, 200)
    assert facts.model.fingerprint == "a fingerprint"
    assert plan.contestants[1].particulars == {"temperature": "0.5"}
    assert RunFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts
