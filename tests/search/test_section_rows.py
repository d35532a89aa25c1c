"""An index of documents: a row a section, hits that can be opened, a folder whose changes are noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import isotrope
from isotrope.cli import app
from isotrope.errors import InputError
from isotrope.search.section_rows import WORDS, sections_of

GUIDE = """# Guide

How to begin.

## Orders

### Cancel

The order is cancelled
on its page.

## Empty

## Refunds

Money comes back in a week.
"""


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = Path("docs")
    (folder / "deep").mkdir(parents=True)
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")
    (folder / "deep" / "note.txt").write_text("The harbour opens at nine.\n", encoding="utf-8")
    return folder


def found(place: object, *words: object) -> list[tuple[str, int, str]]:
    hits = isotrope.search(place, *words, mode="lexical")
    return [(hit.file, hit.line, hit.columns["heading"]) for hit in hits]


def test_sections_have_the_headings_above_them_and_their_first_line(docs: Path) -> None:
    assert [tuple(section) for section in sections_of(docs / "guide.md")] == [
        (1, "Guide", "How to begin."),
        (7, "Guide › Orders › Cancel", "The order is cancelled on its page."),
        (14, "Guide › Refunds", "Money comes back in a week."),
    ]


def test_a_long_section_is_cut_at_a_paragraph_and_each_part_knows_its_line(tmp_path: Path) -> None:
    path = tmp_path / "long.md"
    path.write_text("# Long\n\n" + "\n\n".join(f"{number} " + "word " * 99 for number in range(10)), encoding="utf-8")
    sections = list(sections_of(path))
    assert [section.line for section in sections] == [1, 11, 19]
    assert {section.heading for section in sections} == {"Long"}
    assert [len(section.text.split()) for section in sections] == [WORDS, WORDS, 200]


def test_a_hit_names_its_document_its_line_and_its_heading(docs: Path, tiny: Path) -> None:
    made = isotrope.index(tiny, docs, "docs.index")
    assert (made.rows, made.columns) == (4, {"heading": "text"})
    assert found("docs.index", "cancelled")[0] == ("docs/guide.md", 7, "Guide › Orders › Cancel")
    assert found("docs.index", "harbour") == [("docs/deep/note.txt", 1, "")]
    (hit,) = isotrope.search("docs.index", "money", top=1)
    assert hit.text == "Guide › Refunds: Money comes back in a week."
    assert found("docs.index", "money")[0] == found(tiny, docs, "money")[0] == ("docs/guide.md", 14, "Guide › Refunds")
    (only,) = isotrope.search("docs.index", "page", mode="lexical", where="heading like '%Cancel'")
    assert only.line == 7


def test_a_heading_counts_once_among_the_words_of_its_section_whether_it_is_kept_or_not(tiny: Path, docs: Path) -> None:
    (docs / "long.md").write_text("# Zebra\n\n" + "They graze in the morning sun. " * 30, encoding="utf-8")
    for keep in (["heading"], []):
        isotrope.index(tiny, docs, f"{len(keep)}.index", keep=keep)
    (kept,), (left_out,) = (isotrope.search(f"{number}.index", "zebra", mode="lexical") for number in (1, 0))
    assert kept.score == left_out.score


def test_the_command_prints_what_can_be_opened_and_json_has_fields(docs: Path, tiny: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["index", str(tiny), "docs", "--output", "docs.index"]).exit_code == 0
    assert "docs/guide.md:14" in runner.invoke(app, ["search", "docs.index", "money", "--top", "1"]).stdout
    (hit,) = json.loads(runner.invoke(app, ["search", "docs.index", "money", "--top", "1", "--json"]).stdout)
    assert (hit["file"], hit["line"], hit["columns"]) == ("docs/guide.md", 14, {"heading": "Guide › Refunds"})


def test_the_command_prints_every_kept_column_of_a_table(tiny: Path, docs: Path) -> None:
    """Of documents it leaves the headings out, as each text begins with its own."""
    Path("faq.tsv").write_text("text\tnumber\ttopic\n1 ferry sails at noon.\t1\t\n", encoding="utf-8")
    runner = CliRunner()
    printed = runner.invoke(app, ["search", str(tiny), "faq.tsv", "ferry"]).stdout
    assert "number" in printed
    assert "topic" in printed
    assert "heading" not in runner.invoke(app, ["search", str(tiny), "docs", "money"]).stdout


@pytest.mark.parametrize("change", ["new", "changed", "gone"])
def test_a_document_that_comes_changes_or_goes_is_noticed(docs: Path, tiny: Path, change: str) -> None:
    isotrope.index(tiny, docs, "docs.index")
    found(tiny, docs, "money")
    if change == "new":
        (docs / "new.rst").write_text("New\n===\n\nA zebra crosses.\n", encoding="utf-8")
    elif change == "changed":
        (docs / "deep" / "note.txt").write_text("A zebra crosses.\n", encoding="utf-8")
    else:
        (docs / "guide.md").rename("zebra.md")
    with pytest.raises(InputError, match="has changed since it was indexed"):
        isotrope.search("docs.index", "zebra")
    made = isotrope.index(tiny, docs, "docs.index", update=True)
    assert made.reused == {"new": 4, "changed": 3, "gone": 1}[change]
    for place in (("docs.index",), (tiny, docs)):
        assert bool(found(*place, "zebra")) is (change != "gone")
        assert bool(found(*place, "money")) is (change != "gone")


def test_a_kept_index_of_a_folder_is_made_once(docs: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found(tiny, docs, "money")
    monkeypatch.setattr("isotrope.search.kept_index._make", None)
    assert found(tiny, docs, "money")[0][1] == 14
    assert (docs.parent / "docs.isotrope").is_dir()


def test_hits_of_a_kept_index_can_be_opened_from_wherever_it_is_asked(
    docs: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"docs": "docs/guide.md", str(docs.absolute()): str(docs.absolute() / "guide.md")}
    for place, name in {**places, "docs/guide.md": "docs/guide.md"}.items():
        assert found(tiny, place, "money")[0][0] == name
    monkeypatch.setattr("isotrope.search.kept_index._make", None)
    monkeypatch.chdir(docs)
    for place, name in {".": "guide.md", "guide.md": "guide.md", "../docs": "../docs/guide.md"}.items():
        assert found(tiny, place, "money")[0][0] == name
    monkeypatch.chdir("deep")
    assert found(tiny, "..", "money")[0][0] == "../guide.md"
    assert [path.name for path in Path().iterdir()] == ["note.txt"]


def test_a_kept_index_of_a_linked_document_is_made_once(
    docs: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("linked.md").symlink_to(docs / "guide.md")
    found(tiny, "linked.md", "money")
    monkeypatch.setattr("isotrope.search.kept_index._make", None)
    assert found(tiny, "linked.md", "money")[0][0] == "linked.md"


def test_what_is_no_text_has_no_rows_and_is_noticed_when_it_becomes_one(
    docs: Path, tiny: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (docs / "bad.md").write_bytes(b"caf\xe9\n")
    (docs / "lost.md").symlink_to("nowhere.md")
    caplog.set_level("INFO", logger="isotrope")
    assert isotrope.index(tiny, docs, "docs.index").rows == 4
    assert any("docs/bad.md (byte 0xe9 is not UTF-8), docs/lost.md (No such file" in line for line in caplog.messages)
    assert found("docs.index", "money")
    (docs / "bad.md").write_text("A café.\n", encoding="utf-8")
    with pytest.raises(InputError, match="has changed"):
        found("docs.index", "money")


def test_a_document_alone_that_is_no_text_and_a_folder_without_any_are_refused(tmp_path: Path, tiny: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8"):
        isotrope.index(tiny, tmp_path / "bad.md", tmp_path / "i")
    with pytest.raises(InputError, match="no sentences found"):
        isotrope.index(tiny, tmp_path, tmp_path / "i")
    (tmp_path / "bad.md").unlink()
    for words in ((), ("a query",)):
        with pytest.raises(InputError, match="this is a folder"):
            isotrope.search(tiny, tmp_path, *words) if words else isotrope.index(tiny, tmp_path, tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_documents_and_a_table_stand_in_one_index(docs: Path, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "faq.tsv").write_text("text\tyear\nA ferry sails.\t2020\n", encoding="utf-8")
    isotrope.index(tiny, [docs, tmp_path / "faq.tsv"], "all.index")
    (hit,) = isotrope.search("all.index", "ferry", top=1, mode="lexical")
    assert (hit.file, hit.columns) == ("faq.tsv", {"heading": None, "year": 2020})
    with pytest.raises(InputError, match="has no year; every row needs one"):
        isotrope.index(tiny, [docs, tmp_path / "faq.tsv"], "other.index", id_column="year")


def test_columns_that_no_file_has_are_refused(docs: Path, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A ferry sails.\n", encoding="utf-8")
    for text in (docs, docs / "guide.md", tmp_path / "a.txt", [docs, tmp_path / "a.txt"]):
        with pytest.raises(InputError, match="plain text and documents have no columns, and 'title' was asked for"):
            isotrope.index(tiny, text, "docs.index", columns=["title"])
    with pytest.raises(InputError, match="have no columns"):
        isotrope.search(tiny, docs, "ferry", columns=["title"])
    with pytest.raises(InputError, match="unknown column 'title'; known: heading"):
        isotrope.index(tiny, docs, "docs.index", keep=["title"])
    (tmp_path / "faq.tsv").write_text("question\tyear\nA ferry sails.\t2020\n", encoding="utf-8")
    assert isotrope.index(tiny, [docs, tmp_path / "faq.tsv"], "all.index", columns=["question"]).rows == 5
