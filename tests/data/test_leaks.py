"""Leaks: what counts as the same sentence, what is reported, what a clean copy holds."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

from isotrope.cli import main
from isotrope.data.leaks import Protected, find_leaks, protect, words_of
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
    with pytest.raises(InputError, match="replace its source"):
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


def test_the_benchmarks_are_protected_but_for_transfer_training_parts(shared_data: Path) -> None:
    names = {file.name for file in protected_files(shared_data)}
    assert {"sts12.test.tsv.gz", "stsb.train.tsv.gz", "sick.test.tsv.gz", "mr.tsv.gz", "trec.test.tsv.gz"} <= names
    assert not {"trec.train.tsv.gz", "sst2.phrases.train.tsv.gz"} & names
