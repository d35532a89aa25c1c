"""`isotrope compare` and `isotrope mine` as a person types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isotrope.cli import main
from isotrope.methods.simcse import SupervisedSimCSE

SHORT = ["--max-steps", "2", "--eval-steps", "2", "--batch-size", "16", "--held-out", "40", "--seeds", "1"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def typed(*words: object, code: int = 0) -> str:
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        assert stop.value.code == code, captured.err
        return captured.out if code < 2 else captured.err

    return typed


def test_a_table_for_people_json_for_programs_and_markdown_for_a_page(
    run: Any, tiny: Path, sentences: Path, triples: Path, tmp_path: Path
) -> None:
    words = [
        "compare",
        *SHORT,
        sentences,
        triples,
        "--methods",
        "simcse,hot=simcse,simcse-supervised",
        "--set",
        "hot.temperature=0.5",
    ]
    words += ["--model", tiny, "--output", tmp_path / "all"]
    table = run(*words, "--markdown", tmp_path / "table.md")
    for shown in ("start", "hot", "simcse-supervised", "triples.tsv", "hot: simcse, temperature 0.5.", "max_steps 2"):
        assert shown in table
    told = json.loads(run(*words, "--json"))
    assert [row["name"] for row in told["rows"]] == ["start", "simcse", "hot", "start", "simcse-supervised"]
    assert told == json.loads((tmp_path / "all" / "comparison.json").read_text(encoding="utf-8"))
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert page.startswith("| method | text | MRR of all rows |")
    again = run("compare", tmp_path / "all" / "comparison.json", "--markdown", tmp_path / "again.md")
    assert again.splitlines()[:-1] == table.splitlines()[:-1]
    assert (tmp_path / "again.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "0"], "budget must be a time above 0, such as 90s, 10m or 2h; '0' was given (--budget)."),
        (["--budget", "soon"], "'soon' was given"),
        (["--budget", "1m", "--max-steps", "3"], "max_steps and budget were given; all runs are equal in one of them"),
        (["--vary", "temperature"], "--vary temperature was not understood; write SETTING=VALUES"),
        (["--vary", "tau=1,2"], "No method that is compared has the setting tau"),
        (["--vary", "temperature=1", "--vary", "temperature=2"], "--vary names temperature twice"),
        (["--search", "learning_rate=1e-3:1e-5"], "must run from a number to a higher one; 0.001 to 1e-05 was given"),
        (["--search", "learning_rate"], "--search learning_rate was not understood"),
        (["--search", "temperature=0.1:0.2", "--trials", "0"], "trials must be at least 1, not 0 (--trials)."),
    ],
)
def test_lengths_values_and_ranges_that_cannot_be_are_refused(
    run: Any, sentences: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    found = run("compare", sentences, "--methods", "simcse", "--output", tmp_path / "all", *words, code=2)
    assert said in " ".join(found.split())
    assert not (tmp_path / "all").exists()


def test_values_and_a_search_as_they_are_typed(run: Any, tiny: Path, sentences: Path, tmp_path: Path) -> None:
    words = ["compare", *SHORT, sentences, "--methods", "simcse", "--model", tiny, "--output", tmp_path / "all"]
    words += ["--vary", "temperature=0.05,0.5", "--search", "learning-rate=1e-4:1e-3:log,weight_decay=0:0.1"]
    told = json.loads(run(*words, "--trials", "1", "--sampler", "random", "--json"))
    assert [row["name"] for row in told["rows"]] == ["start", "simcse temperature=0.05", "simcse temperature=0.5"]
    settings = told["runs"][1]["facts"]["settings"]
    assert (settings["temperature"], settings["learning_rate"], settings["weight_decay"]) == (0.5, 1e-4, 0.01)
    assert (tmp_path / "all" / "search" / "simcse-temperature=0.5" / "trial-0" / "judgement.json").is_file()


def test_one_that_fails_gives_the_code_1_and_the_others_their_rows(
    run: Any, tiny: Path, sentences: Path, triples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SupervisedSimCSE, *_: Any) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(SupervisedSimCSE, "represent", broken)
    words = [
        "compare",
        sentences,
        triples,
        "--methods",
        "simcse-supervised,simcse",
        "--model",
        tiny,
        "--output",
        tmp_path / "all",
        *SHORT,
    ]
    table = run(*words, code=1)
    assert "simcse-supervised, seed 42, failed: RuntimeError: shapes do not match" in table
    assert "│ simcse " in table


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.txt", "--methods", "simcse"], "no such file"),
        (["sentences.txt"], "No method was named"),
        (["sentences.txt", "--methods", "simcse-supervised"], "needs triples or pairs"),
        (["sentences.txt", "--methods", "simcse", "--set", "temperature=1"], "METHOD.SETTING=VALUE"),
        (["sentences.txt", "--methods", "simcse", "--temperature", "1"], "--set simcse.temperature"),
        (["sentences.txt", "--methods", "simcse", "--max-steps"], "--max-steps needs a value"),
        (["comparison.json"], "no such comparison"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    run: Any, sentences: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    told = run("compare", *words, code=2)
    assert said in told
    assert len(told.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["sentences.txt"]


def test_mine_writes_triples_and_counts(run: Any, tiny: Path, tmp_path: Path, topics: list[str]) -> None:
    pairs = tmp_path / "pairs.tsv"
    rows = [f"{topics[i]}\t{topics[i + 1]}" for i in range(0, 60, 2)]
    pairs.write_text("anchor\tpositive\n" + "\n".join([*rows, rows[0]]) + "\n", encoding="utf-8")
    words = ["mine", pairs, "--model", tiny, "--output", tmp_path / "triples.tsv", "--first", 2, "--last", 5]
    told = json.loads(run(*words, "--json"))
    assert (told["triples"], told["pairs"], told["duplicates"], told["too_near"]) == (30, 31, 1, 0)
    assert len((tmp_path / "triples.tsv").read_text(encoding="utf-8").splitlines()) == 31
    assert "too near" in run(*words)
    assert "written as .tsv" in run("mine", pairs, "--model", tiny, "--output", tmp_path / "triples.json", code=2)
