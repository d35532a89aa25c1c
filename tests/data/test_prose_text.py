"""A folder of documents is one text for every reader: sentences, documents, lines that are found again, a cache."""

from __future__ import annotations

import gzip
import logging
import lzma
import os
import subprocess
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import pytest
from hash_tokenizer import HashTokenizer

import isotrope
from isotrope.data import prose_text as module
from isotrope.data.corpus import open_corpus, open_documents
from isotrope.data.prose_text import origin
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.data.sources import read_sentences
from isotrope.data.tables import check_file, content_of
from isotrope.errors import InputError

GUIDE = "# Guide\n\nA sentence that is\nwrapped. Another one.\n\n## Part\n\n- an item\n\n```\ncode\n```\n"


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")
    (folder / "deep" / "note.txt").write_text("First line.\n\nSecond line. And more.\n", encoding="utf-8")
    return folder


def documents(place: Path) -> list[list[str]]:
    records = [record for record in read(place, record_type_named("sentences")) if record.texts[0]]
    return [[one.texts[0] for one in found] for _, found in groupby(records, lambda record: record.document)]


def test_each_file_of_a_folder_is_a_document_of_sentences(docs: Path) -> None:
    assert documents(docs) == [
        ["First line.", "Second line.", "And more."],
        ["Guide", "A sentence that is wrapped.", "Another one.", "Part", "an item"],
    ]


def test_headings_begin_documents_in_a_file_alone_but_for_those_that_nothing_stands_between(tmp_path: Path) -> None:
    path = tmp_path / "book.md"
    path.write_text("# Book\n\n## One\n\nText.\n\n### Deep\n\nMore.\n\n## Two\n\nEnd.\n", encoding="utf-8")
    assert documents(path) == [["Book", "One", "Text.", "Deep", "More."], ["Two", "End."]]


def test_a_line_of_the_text_is_found_in_its_document(docs: Path) -> None:
    text = check_file(docs)
    assert text.name == "docs.txt"
    lines = text.read_text(encoding="utf-8").splitlines()
    assert lines[3] == ""  # between documents
    assert origin(docs, lines.index("Another one.") + 1) == ("docs/guide.md", 3)
    assert origin(text, lines.index("And more.") + 1) == ("docs/deep/note.txt", 3)
    assert origin(docs / "deep" / "note.txt", 3) is None


def test_every_change_of_the_folder_is_noticed(docs: Path) -> None:
    def found() -> str:
        return open_corpus(docs, ["sentences"], HashTokenizer()).fingerprint

    seen = [found()]
    assert found() == seen[0]
    for change in (
        lambda: (docs / "new.rst").write_text("More text.", encoding="utf-8"),
        lambda: (docs / "guide.md").write_text(GUIDE.replace("Another", "A second"), encoding="utf-8"),
        lambda: (docs / "deep" / "note.txt").unlink(),
    ):
        change()
        seen.append(found())
    assert len(set(seen)) == 4
    os.utime(docs / "guide.md", (1, 1))  # the same bytes
    assert found() == seen[-1]


def test_several_places_are_documents_of_one_text_and_a_change_meanwhile_is_refused(docs: Path, tmp_path: Path) -> None:
    """What pre-training reads."""
    (tmp_path / "more.txt").write_text("A line.\n\nA line behind.\n", encoding="utf-8")
    corpus = open_documents([docs, tmp_path / "more.txt"], HashTokenizer())
    assert (len(corpus), corpus.counts.documents) == (10, 4)
    contents = [content_of(docs)]
    records = read_sentences([docs], contents)
    next(records)
    (docs / "new.md").write_text("More.", encoding="utf-8")
    with pytest.raises(InputError, match="changed while it was read"):
        list(records)


def test_what_is_no_text_is_counted_named_and_left_out(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = documents(docs)
    (docs / "a.md").write_bytes(b"Fine.\ncaf\xe9\n")
    (docs / "b.txt").write_bytes(b"Fine line.\n" * 9 + b"\0\1\2")
    (docs / "c.md").symlink_to(docs / "nowhere.md")
    os.mkfifo(docs / "d.md")
    (docs / "e.md").write_bytes(b"")
    caplog.set_level(logging.INFO, logger="isotrope")
    caplog.clear()  # another test may have left the level as low before
    assert documents(docs) == good
    (line,) = [record.message for record in caplog.records]
    assert "2 documents, 8 sentences" in line
    assert "4 files are no text and left out: docs/a.md (byte 0xe9 is not UTF-8), docs/b.txt (a NUL byte" in line
    assert "docs/c.md (No such file or directory), docs/d.md (neither a file" in line


def test_a_folder_of_nothing_but_code_and_broken_files_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("```\ncode\n```\n", encoding="utf-8")
    (tmp_path / "b.md").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(InputError, match=r"no sentences found in 2 files; 1 file is no text and left out: .*/b.md"):
        check_file(tmp_path)


def test_a_file_that_changes_while_it_is_read_is_refused(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks_of = module.blocks_of

    def changing(path: Path) -> Any:
        yield from blocks_of(path)
        path.write_text("Another text.", encoding="utf-8")

    monkeypatch.setattr(module, "blocks_of", changing)
    with pytest.raises(InputError, match="the file changed while it was read"):
        check_file(docs)
    assert not list((docs.parent / "cache").rglob("docs.txt"))


def test_a_damaged_or_removed_text_is_made_again(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = check_file(docs)
    before = text.read_text(encoding="utf-8")
    text.unlink()
    assert check_file(docs).read_text(encoding="utf-8") == before
    text.write_text("cut", encoding="utf-8")
    monkeypatch.setattr(module, "_made", {})  # another process
    assert check_file(docs).read_text(encoding="utf-8") == before


def test_record_types_of_two_texts_are_refused_by_the_name_that_was_given(docs: Path) -> None:
    with pytest.raises(InputError, match=f"^{docs}: plain text holds one sentence a line, and pairs were asked for"):
        list(read(docs, record_type_named("pairs")))


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_verbs_take_a_folder_where_they_take_a_text(docs: Path, tiny: Path, tmp_path: Path, topics: list[str]) -> None:
    for number in range(8):
        text = "\n\n".join(f"## Part\n\n{one}." for one in topics[40 * number : 40 * number + 40])
        (docs / f"{number}.md").write_text(text, encoding="utf-8")
    run = isotrope.train("quick-thoughts", docs, model=tiny, output=tmp_path / "run", max_steps=1, batch_size=4)
    assert run.folder is not None
    found = isotrope.check(docs, tiny)
    assert (found.files, found.format, found.documents) == ([str(docs)], "documents", 10)
    assert "declutr" in found.methods
    made = isotrope.encode(tiny, docs, tmp_path / "v.npy")
    assert made.sentences == found.records
    report = isotrope.leaks(docs, docs / "guide.md", output=tmp_path / "clean")
    assert report.examples[0]["file"].startswith("docs/")
    assert "A sentence that is wrapped." not in (tmp_path / "clean" / "docs.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("ending", "opened"), [("", open), (".gz", gzip.open), (".xz", lzma.open)])
def test_check_says_that_lines_are_wrapped_and_what_to_do(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, opened: Callable[..., IO[str]]
) -> None:
    line = (
        "The lines of this text are wrapped at sixty columns and each\nof them goes on in the next. Notes are often so"
    )
    monkeypatch.chdir(tmp_path)
    path = Path(f"my notes.txt{ending}")
    with opened(path, "wt", encoding="utf-8") as file:
        file.write("\n".join([line] * 20))
    found = isotrope.check(path, tiny)
    assert found.wrapped == [str(path)]
    (advice,) = (one for one in found.advice if "end inside a sentence" in one)
    subprocess.run(advice.split("`")[1], shell=True, check=True)
    assert isotrope.check("my notes.documents", tiny).wrapped == []
