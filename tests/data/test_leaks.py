"""Leaks: what counts as the same sentence, what is reported, what a clean copy holds."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

import isotrope
from isotrope.cli import main
from isotrope.data.compared_words import words_of
from isotrope.data.leaks import Protected, find_leaks, protect
from isotrope.data.protected_pairs import key_of
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import protected_files

SECRET = "A man doesn't play the guitar on the old stage."


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secret.test.tsv"
    path.write_text(
        "score\tsentence1\tsentence2\n"
        f"3.2\t{SECRET}\tCafé owners strike. They want more money now.\n"
        "1.0\tTwo words\tgood idea\n"
    )
    return path


@pytest.mark.parametrize(
    "line",
    [
        SECRET,
        "a man does n't play the guitar , on the old stage",
        "A MAN DOESN’T PLAY THE GUITAR ON THE OLD STAGE",
        f"He wrote: {SECRET} Nobody believed him.",
        "cafe owners strike",
        "They want more money now!",
    ],
)
def test_the_same_sentence_in_other_clothes_is_found(secrets: Path, line: str) -> None:
    assert protect([secrets]).found_in(line)


@pytest.mark.parametrize(
    "line",
    [
        "A man doesn't play the guitar on the new stage.",
        "Two words",  # shorter than a sentence
        "I think cafe owners strike too often",  # short ones count only on their own
        "batman doesnt play the guitar on the old stagecoach",  # parts of words are not words
        "",
    ],
)
def test_another_sentence_is_not(secrets: Path, line: str) -> None:
    assert not protect([secrets]).found_in(line)


def test_words_are_compared_without_case_accents_and_punctuation() -> None:
    assert words_of("Café “Déjà-vu”, isn't it?") == ["cafe", "deja", "vu", "isnt", "it"]


@pytest.mark.parametrize(
    "release",
    [
        "He can not pay the rent ( $ 500 ) , `` she 's said '' .",
        "he can not pay the rent -lrb- $ 500 -rrb- , `` she's said ''",
        "He cannot pay the rent [$500], she 's said",
        "he cannot pay the rent -LSB- 500 -RSB- &quot;she's said&quot;",
        "He cannot pay 'the rent' (500), she' s said.",
    ],
)
def test_a_text_and_its_tokenised_release_have_the_same_words(release: str) -> None:
    assert words_of(release) == ["he", "cannot", "pay", "the", "rent", "500", "shes", "said"]


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("do n't", "don't"),
        ("ca n't", "can’t"),
        ("ca n 't", "can't"),
        ("wo n't", "won't"),
        ("they 're", "they're"),
        ("gon na", "gonna"),
        ("gim me", "gimme"),
        ("the speaker' s", "the speaker's"),
    ],
)
def test_what_a_tokenizer_cut_is_joined_on_both_sides(cut: str, whole: str) -> None:
    assert words_of(cut) == words_of(whole)
    protected = Protected([("set", [f"I think {cut} go there today"])])
    assert protected.found_in(f"i think {whole} go there today")
    assert Protected([("set", [f"I think {whole} go there today"])]).found_in(f"i think {cut} go there today")


@pytest.mark.parametrize(("first", "second"), [("can't", "cannot"), ("he said 'no'", "he saidno"), ("is not", "isnot")])
def test_other_words_stay_other_words(first: str, second: str) -> None:
    assert words_of(first) != words_of(second)


def test_the_report_counts_by_file_and_set_and_the_copy_is_clean(secrets: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt.xz"
    with lzma.open(text, "wt") as file:
        file.write(f"One line here.\n\n{SECRET}\nThe last line.\n")
    table = tmp_path / "pairs.tsv.gz"
    with gzip.open(table, "wt") as file:
        file.write(f"anchor\tpositive\nfirst one here\tsecond one here\nsomething else\t{SECRET}\n")
    report = find_leaks([text, table], protect([secrets]), tmp_path / "clean")
    assert dict(report.lines) == {"text.txt.xz": 3, "pairs.tsv.gz": 2}
    assert dict(report.leaks) == {"text.txt.xz": 1, "pairs.tsv.gz": 1}
    assert dict(report.by_set) == {"secret.test": 2}
    assert report.examples[0]["line"] == 3
    with lzma.open(tmp_path / "clean" / "text.txt.xz", "rt") as file:
        assert file.read() == "One line here.\n\nThe last line.\n"  # the document's end stays
    with gzip.open(tmp_path / "clean" / "pairs.tsv.gz", "rt") as file:
        assert file.read() == "anchor\tpositive\nfirst one here\tsecond one here\n"
    again = find_leaks([tmp_path / "clean" / "text.txt.xz"], protect([secrets]))
    assert not again.leaks


def test_a_copy_never_replaces_its_source(secrets: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("One line here.\n")
    with pytest.raises(InputError, match="the output is also read"):
        find_leaks([text], protect([secrets]), tmp_path)
    assert text.read_text() == "One line here.\n"


def test_nothing_to_protect_and_files_of_another_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="three words"):
        Protected([("empty", ["a b"])])
    table = tmp_path / "rows.csv"
    table.write_text("text\na b c\n")
    with pytest.raises(InputError, match=r"\.txt and \.tsv"):
        protect([table])
    with pytest.raises(InputError, match="`against`"):
        protect([])


def test_the_command_prints_json(secrets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text(f"One line here.\n{SECRET}\n")
    with pytest.raises(SystemExit) as stop:
        main(["leaks", str(text), "--against", str(secrets), "--json"])
    assert stop.value.code == 0
    assert json.loads(capsys.readouterr().out)["leaks"] == {"text.txt": 1}
    with pytest.raises(SystemExit):
        main(["leaks", str(text), "--against", str(secrets)])
    assert "leaking from secret.test: 1 lines" in capsys.readouterr().out


PAIR = ("A man is playing (badly).", "Somebody plays the old guitar.")


@pytest.fixture
def tests_of_a_folder(tmp_path: Path) -> Path:
    """A data folder: a test split with one pair, a dev split that must not count, a transfer set without pairs."""
    for name, text in {
        "sts/stsb.test": f"subset\tsentence1\tsentence2\tscore\nmain-news/headlines\t{PAIR[0]}\t{PAIR[1]}\t2.0\n",
        "sts/stsb.dev": "sentence1\tsentence2\tscore\nA dog runs fast\tA cat runs fast\t1.0\n",
        "transfer/trec.test": "label\tsentence\nNUM\tA dog runs fast\n",
    }.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / f"{name}.tsv").write_text(text)
    return tmp_path / "data"


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    path = tmp_path / "scored.tsv"
    rows = [
        ("2.0", PAIR[1], "a man is playing -lrb- badly -rrb-"),  # the other order, another tokenisation
        ("3.0", PAIR[0], "Another side of three words"),  # one sentence of a test pair
        ("4.0", "A dog runs fast", "A cat runs fast"),  # a pair of the dev split
        ("1.0", "two words", "here now"),
    ]
    lines = ["subset\tscore\tsentence1\tsentence2", *("main-news/headlines\t" + "\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_pairs_of_a_test_set_are_dropped_in_either_order(tests_of_a_folder: Path, scored: Path, tmp_path: Path) -> None:
    lines = scored.read_text().splitlines()
    found = isotrope.leaks([scored], None, tests_of_a_folder, tmp_path / "clean", match="pair", tests_only=True)
    assert (dict(found.protected), dict(found.by_set)) == ({"stsb.test": 1}, {"stsb.test": 1})
    assert (tmp_path / "clean" / "scored.tsv").read_text().splitlines() == [lines[0], *lines[2:]]
    both = isotrope.leaks([scored], None, tests_of_a_folder, match="pair")
    assert dict(both.by_set) == {"stsb.test": 1, "stsb.dev": 1}


def test_with_sentences_one_side_is_enough_and_the_name_of_a_subset_is_none(
    tests_of_a_folder: Path, scored: Path, tmp_path: Path
) -> None:
    lines = scored.read_text().splitlines()
    isotrope.leaks([scored], None, tests_of_a_folder, tmp_path / "clean", tests_only=True)
    assert (tmp_path / "clean" / "scored.tsv").read_text().splitlines() == [lines[0], lines[4]]


def test_pairs_are_refused_where_there_are_none(tests_of_a_folder: Path, scored: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("One line here.\n")
    table = tmp_path / "labelled.tsv"
    table.write_text("label\ttext\n1\tOne line here\n")
    torn = tmp_path / "torn.tsv"
    torn.write_text("sentence1\tsentence2\nOne line here\n")
    for file, said in (
        (plain, r"\.tsv files"),
        (table, "pairs need sentence1/sentence2"),
        (torn, "torn.tsv:2: 1 fields"),
    ):
        with pytest.raises(InputError, match=said):
            isotrope.leaks([file], None, tests_of_a_folder, tmp_path / "clean", match="pair")
        assert not (tmp_path / "clean" / file.name).exists()
    with pytest.raises(InputError, match="Unknown match 'pairs'"):
        isotrope.leaks([scored], None, tests_of_a_folder, match="pairs")


def test_the_clean_development_set_holds_no_pair_of_a_test_set(shared_data: Path, tmp_path: Path) -> None:
    """The recipe, on the real sets: no test pair is left, no pair twice, and a second run writes the same bytes."""
    recipe = Path(__file__).parents[2] / "recipes" / "development" / "clean_dev.py"
    for name in ("first", "second"):
        subprocess.run([sys.executable, recipe, shared_data, tmp_path / f"{name}.tsv"], check=True, capture_output=True)
    clean = tmp_path / "first.tsv"
    assert clean.read_bytes() == (tmp_path / "second.tsv").read_bytes()
    assert not isotrope.leaks([clean], None, shared_data, match="pair", tests_only=True).leaks
    rows = [line.split("\t") for line in clean.read_text().splitlines()[1:]]
    assert len({key_of(row[1:3]) for row in rows}) == len(rows) > 2000
    assert all(0 <= float(row[3]) <= 5 for row in rows)
    assert json.loads((tmp_path / "first.json").read_text())["in a test set"]["stsb.dev.tsv.gz"] == 1266


def test_the_benchmarks_are_protected_but_for_transfer_training_parts(shared_data: Path) -> None:
    names = {file.name for file in protected_files(shared_data)}
    assert {"sts12.test.tsv.gz", "stsb.train.tsv.gz", "sick.test.tsv.gz", "mr.tsv.gz", "trec.test.tsv.gz"} <= names
    assert not {"trec.train.tsv.gz", "sst2.phrases.train.tsv.gz"} & names


def test_a_copy_is_not_put_among_the_documents_it_is_made_of(secrets: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("Some words stand here.\n", encoding="utf-8")
    for output in (docs, docs / "clean"):
        with pytest.raises(InputError, match=r"would be one of the documents of .*docs; choose a folder outside"):
            isotrope.leaks(docs, [secrets], output=output)
    assert [file.name for file in docs.iterdir()] == ["a.md"]
    isotrope.leaks(docs, [secrets], output=tmp_path / "clean")
    assert (tmp_path / "clean" / "docs.txt").read_text(encoding="utf-8").strip() == "Some words stand here."


def test_a_text_without_a_line_is_refused_and_leaves_no_copy(secrets: Path, tmp_path: Path) -> None:
    good, blank, cut = tmp_path / "good.txt", tmp_path / "blank.txt", tmp_path / "cut.txt.gz"
    good.write_text("One line here.\n")
    blank.write_text("\n \n\t\n")
    cut.write_bytes(gzip.compress(b"One line there.\n" * 500)[:-9])
    for bad, said in ((blank, "no text found"), (cut, "damaged or cut short")):
        with pytest.raises(InputError, match=said):
            isotrope.leaks([good, bad], [secrets], output=tmp_path / "clean")
        assert not (tmp_path / "clean").exists()


def test_one_text_may_be_given_alone(tmp_path: Path) -> None:
    text, protected = tmp_path / "text.txt", tmp_path / "protected.txt"
    text.write_text("a sentence that nobody may have seen before\nanother line\n", encoding="utf-8")
    protected.write_text("a sentence that nobody may have seen before\n", encoding="utf-8")
    alone, listed = isotrope.leaks(text, against=protected), isotrope.leaks([text], against=[protected])
    assert alone == listed
    assert isotrope.leaks(str(text), against=str(protected)) == listed
    assert listed.leaks.total() == 1
