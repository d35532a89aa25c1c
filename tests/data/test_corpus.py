"""The token cache: found again by content, exact, and never half there."""

from __future__ import annotations

import errno
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hash_tokenizer import HashTokenizer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isotrope.data import corpus_writer, packing
from isotrope.data.corpus import Corpus, Records, open_corpus, open_documents
from isotrope.data.packing import pack
from isotrope.errors import InputError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ISOTROPE_CACHE", str(folder))
    return folder


def opened(source: Any, *record_types: str, words: HashTokenizer | None = None, **options: Any) -> Corpus:
    return open_corpus(source, record_types or ("sentences",), words or HashTokenizer(), **options)


def texts_of(corpus: Corpus, field: str = "") -> list[str]:
    return [corpus.text(row, field) for row in range(len(corpus))]


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def complaint(source: Any, *record_types: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        opened(source, *record_types, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message[-1] in ".?"
    assert not re.search(r"[.?!] [A-Z]", message), f"more than one sentence: {message}"
    return message


def left_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() or path.parent.name == "corpora"]


# ---- what goes in comes out


@pytest.mark.parametrize("vocabulary", [5000, 1 << 16, (1 << 16) + 1, 250_000])
def test_texts_and_tokens_come_back_exactly(tmp_path: Path, vocabulary: int) -> None:
    texts = [f"line {i} 第{i}行 naïve 😀" for i in range(300)]
    words = HashTokenizer(vocabulary)
    corpus = opened(write(tmp_path / "a.txt", "\n".join(texts)), words=words)
    assert texts_of(corpus) == texts
    assert [corpus.tokens(row).tolist() for row in range(300)] == [words.ids(text) for text in texts]
    assert corpus.tokens(0).dtype == np.int32


def test_the_widest_small_vocabulary_still_fits_two_bytes() -> None:
    # 65,535 is the last id of a vocabulary of 65,536, and of two bytes.
    def one(number: int) -> HashTokenizer:
        return HashTokenizer(number + 1, str(number), lambda texts: (np.array([number], dtype=np.int32), np.array([1])))

    last = opened(["x"], words=one(65_535))
    assert last.tokens(0).tolist() == [65_535]
    more = opened(["x"], words=one(65_536))
    assert more.tokens(0).tolist() == [65_536]


def test_every_field_of_a_triple_is_kept_apart(tmp_path: Path) -> None:
    corpus = opened(write(tmp_path / "a.tsv", "sent0\tsent1\thard_neg\na b\tc\td e f\ng\th i\tj\n"), "triples")
    assert [texts_of(corpus, field) for field in corpus.record_type.fields] == [
        ["a b", "g"],
        ["c", "h i"],
        ["d e f", "j"],
    ]
    assert corpus.tokens(1, "positive").tolist() == HashTokenizer().ids("h i")
    assert corpus.keys.shape == (2, 3)


def test_blocks_join_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.txt", "a b\nc\n\n\n\n\nd e f\ng\n\nh\na b\n")
    whole = opened(path)
    monkeypatch.setattr(corpus_writer, "BLOCK", 2)  # documents, blank lines and texts now cross the borders of blocks
    pieces = opened(path, words=HashTokenizer(name="other"))
    assert texts_of(pieces) == texts_of(whole) == ["a b", "c", "d e f", "g", "h", "a b"]
    assert [pieces.tokens(row).tolist() for row in range(6)] == [whole.tokens(row).tolist() for row in range(6)]
    assert pieces.counts == whole.counts
    assert pieces.documents.tolist() == whole.documents.tolist()


@given(texts=st.lists(st.text(min_size=1).filter(lambda text: text.strip()), min_size=1, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_any_list_of_texts_comes_back_with_white_space_folded(texts: list[str]) -> None:
    assert texts_of(opened(texts)) == [" ".join(text.split()) for text in texts]


def test_a_text_without_tokens_is_still_a_record() -> None:
    silent = HashTokenizer(flat=lambda texts: (np.empty(0, dtype=np.int32), np.zeros(len(texts), dtype=np.int64)))
    corpus = opened(["a", "b"], words=silent)
    assert [corpus.tokens(row).tolist() for row in range(2)] == [[], []]


def test_pages_given_back_are_read_again() -> None:
    corpus = opened(["one", "two"])
    before = texts_of(corpus)
    corpus.release()
    assert texts_of(corpus) == before


def test_records_are_some_rows_of_a_corpus() -> None:
    records = Records(opened([("a", "x"), ("b", "y"), ("c", "z")], "labelled"), [2, 0])
    assert (len(records), records.fields, records.texts(), records.values()) == (2, ("text",), ["c", "a"], ["z", "x"])
    assert [ids.tolist() for ids in records.tokens()] == [HashTokenizer().ids("c"), HashTokenizer().ids("a")]


def test_sentences_carry_no_values() -> None:
    with pytest.raises(InputError, match="no score or label"):
        Records(opened(["a"]), [0]).values()


# ---- counts


def test_empty_lines_and_duplicates_are_counted(tmp_path: Path) -> None:
    counts = opened(write(tmp_path / "a.txt", "a\nb\n\na\n  \na\n\nc\n")).counts
    assert (counts.records, counts.empty, counts.duplicates, counts.distinct, counts.documents) == (5, 3, 2, 3, 4)
    assert str(counts).startswith("5 records, 2 duplicates")


def test_a_pair_with_one_blank_side_is_empty_and_a_swapped_pair_is_no_duplicate(tmp_path: Path) -> None:
    corpus = opened(write(tmp_path / "a.tsv", "anchor\tpositive\na\tb\nb\ta\na\t\n\tb\n\t\na\tb\na\tc\n"), "pairs")
    counts = corpus.counts
    assert (counts.records, counts.empty, counts.duplicates, counts.distinct) == (4, 3, 1, 3)


def test_values_stay_with_their_records_when_empty_ones_leave() -> None:
    corpus = opened([("a", "b", 0.5), ("", "c", 1), ("d", "e", 2.5)], "scored-pairs")
    assert corpus.values == ["0.5", "2.5"]
    assert texts_of(corpus, "sentence2") == ["b", "e"]


def test_equal_texts_have_equal_keys_in_every_field(tmp_path: Path) -> None:
    keys = opened([("a", "b"), ("b", "a")], "pairs").keys
    assert keys[0, 0] == keys[1, 1] != keys[0, 1] == keys[1, 0]


# ---- found again


def test_the_same_content_under_another_name_is_not_tokenized_again(tmp_path: Path) -> None:
    words = HashTokenizer()
    first = opened(write(tmp_path / "a.txt", "one\ntwo\n"), words=words)
    again = opened(write(tmp_path / "elsewhere" / "b.txt", "one\ntwo\n"), words=words)
    assert words.asked == 2
    assert again.fingerprint == first.fingerprint
    assert texts_of(again) == texts_of(first)


def test_a_file_changed_in_place_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "one\ntwo\n")
    opened(path)
    assert texts_of(opened(write(path, "one\nsix\n"))) == ["one", "six"]


def test_another_tokenizer_has_its_own_cache(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "one\ntwo\n")
    first, other = opened(path), opened(path, words=HashTokenizer(7, "seven"))
    assert first.fingerprint != other.fingerprint
    assert other.tokens(0).tolist() == HashTokenizer(7).ids("one")
    assert first.tokens(0).tolist() == HashTokenizer().ids("one")


def test_other_columns_another_kind_and_splitting_have_their_own_cache(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "One. Two.", "title": "Head"}\n')
    ways: list[dict[str, Any]] = [{}, {"columns": ["title"]}, {"columns": ["text"]}, {"split": True}]
    found = [opened(path, **way) for way in ways] + [opened(path, "documents")]
    assert [texts_of(corpus) for corpus in found] == [
        ["One. Two."],
        ["Head"],
        ["One. Two."],
        ["One.", "Two."],
        ["One.", "Two."],
    ]
    assert len({corpus.fingerprint for corpus in found}) == 5


def test_the_same_bytes_under_another_suffix_are_other_records(tmp_path: Path) -> None:
    content = 'text\n"one, two"\n'
    found = {suffix: texts_of(opened(write(tmp_path / f"a{suffix}", content))) for suffix in (".txt", ".tsv", ".csv")}
    assert found == {".txt": ["text", '"one, two"'], ".tsv": ['"one, two"'], ".csv": ["one, two"]}


def test_equal_lists_share_a_cache_and_other_lists_do_not() -> None:
    words = HashTokenizer()
    first, again, other = (opened(texts, words=words).fingerprint for texts in (["a", "b"], ("a", "b"), ["ab"]))
    assert first == again != other
    assert words.asked == 3


# ---- which record_type


def test_the_first_kind_whose_columns_are_there_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "anchor\tpositive\na\tb\n")
    assert opened(path, "triples", "pairs").record_type.name == "pairs"
    assert "anchor/positive/negative" in complaint(path, "triples", "scored-pairs")


def test_a_text_file_or_list_of_strings_takes_the_first_kind_of_one_column(tmp_path: Path) -> None:
    assert opened(write(tmp_path / "a.txt", "a\nb\n"), "pairs", "sentences").record_type.name == "sentences"
    assert opened(["a", "b"], "pairs", "sentences").record_type.name == "sentences"
    assert "pairs were asked for" in complaint(write(tmp_path / "b.txt", "a\nb\n"), "pairs")


def test_an_unknown_kind_is_named() -> None:
    assert "'sentence'; did you mean 'sentences'" in complaint(["a"], "sentence")


# ---- lists


def test_a_list_of_tuples() -> None:
    corpus = opened([("a", "b"), ["c", "d"]], "pairs")
    assert (texts_of(corpus, "anchor"), texts_of(corpus, "positive")) == (["a", "c"], ["b", "d"])


def test_tuples_find_the_kind_of_their_width() -> None:
    assert opened([("a", "b", "c")], "pairs", "triples").record_type.name == "triples"


def test_a_list_of_dictionaries() -> None:
    rows = [{"premise": "a", "entailment": "b", "id": 1}, {"premise": "c", "entailment": "d", "id": 2}]
    corpus = opened(rows, "pairs")
    assert (texts_of(corpus, "anchor"), texts_of(corpus, "positive")) == (["a", "c"], ["b", "d"])


def test_columns_choose_among_the_keys_of_dictionaries() -> None:
    rows = [{"text": "a", "title": "b"}]
    assert texts_of(opened(rows, columns=["title"])) == ["b"]
    message = complaint(rows, columns=["name"])
    assert "'name'" in message
    assert "'text', 'title'" in message


def test_a_list_can_be_split_like_a_file() -> None:
    assert texts_of(opened(["One. Two.", "Three."], split=True)) == ["One.", "Two.", "Three."]


def test_documents_in_a_list_are_cut() -> None:
    corpus = opened(["One. Two.", "Three."], "documents")
    assert (texts_of(corpus), corpus.documents.tolist(), corpus.counts.documents) == (
        ["One.", "Two.", "Three."],
        [0, 0, 1],
        2,
    )


@pytest.mark.parametrize(
    ("rows", "record_type", "words"),
    [
        ([], "sentences", "is empty"),
        (["a", "b"], "pairs", "pairs were wanted"),
        (["a", None], "sentences", "sentences were wanted"),
        ([1, 2], "sentences", "sentences were wanted"),
        ({"text": ["a", "b"]}, "sentences", "give a list of dictionaries"),
        ([("a", "b", "c")], "pairs", "tuples of 3; pairs were wanted"),
        ([("a", "b"), ("c",)], "pairs", "record 2 has 1 field"),
        ([{"left": "a", "right": "b"}], "pairs", "'left', 'right'"),
        (["", " "], "sentences", "no records found; 2 lines are empty"),
        (["fine", "half \ud83d"], "sentences", "the given list:2:"),
    ],
)
def test_a_list_that_does_not_fit_says_why(rows: Any, record_type: str, words: str) -> None:
    assert words in complaint(rows, record_type)


# ---- nothing half-written


def test_a_tokenizer_that_fails_in_the_middle_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_writer, "BLOCK", 2)
    path = write(tmp_path / "a.txt", "a\nb\nc\nd\n")
    words = HashTokenizer()

    def fails_at_c(texts: list[str]) -> Any:
        if "c" in texts:
            raise RuntimeError("out of words")
        return words.flat(texts)

    with pytest.raises(RuntimeError, match="out of words"):
        opened(path, words=HashTokenizer(flat=fails_at_c))
    assert words.asked == 2  # the first block was already written
    assert left_in(cache) == []
    assert texts_of(opened(path)) == ["a", "b", "c", "d"]


def test_a_bad_byte_in_the_last_line_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_writer, "BLOCK", 2)
    path = write(tmp_path / "a.txt", b"a\nb\nc\nd\n\xff\n")
    words = HashTokenizer()
    assert complaint(path, words=words).startswith(f"{path}:5: byte 0xff")
    assert words.asked == 4
    assert left_in(cache) == []


def test_an_interrupt_leaves_nothing(cache: Path) -> None:
    def interrupted(texts: list[str]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened(["a"], words=HashTokenizer(flat=interrupted))
    assert left_in(cache) == []


def test_a_file_of_blank_lines_says_so_and_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "a.txt", "\n \n\t\n")
    assert complaint(path) == f"{path}: no records found; 3 lines are empty."
    assert left_in(cache) == []


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".tsv.gz", ".parquet.xz"])
def test_a_damaged_table_is_one_sentence_from_its_first_byte_on(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", b"\xff\xfe\x00")
    assert complaint(path).startswith(str(path))


def test_a_full_disk_is_one_sentence_and_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(corpus_writer, "open", lambda path, mode: Full(path, mode), raising=False)
    message = complaint(["a"])
    assert "no space left on the disk" in message
    assert str(cache) in message
    assert left_in(cache) == []


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_cache_that_cannot_be_a_folder_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    occupied = write(tmp_path / "occupied", "a file")
    monkeypatch.setenv("ISOTROPE_CACHE", str(occupied / below))
    message = complaint(["a"])
    assert message.startswith(f"Cannot write {occupied}")
    assert "a file, not a folder" in message


def test_a_file_where_the_corpora_belong_is_one_sentence(cache: Path) -> None:
    write(cache / "corpora", "a file")
    assert "a file, not a folder" in complaint(["a"])


def test_a_cache_without_its_facts_is_built_again(tmp_path: Path) -> None:
    first = opened(["a", "b"])
    (first.folder / "corpus.json").unlink()
    assert texts_of(opened(["a", "b"])) == ["a", "b"]


def test_the_cache_holds_plain_facts() -> None:
    corpus = opened([("a", "x"), ("b", "y")], "labelled")
    facts = json.loads((corpus.folder / "corpus.json").read_text(encoding="utf-8"))
    assert facts["record_type"] == "labelled"
    assert facts["counts"]["records"] == 2
    assert corpus.folder.name == corpus.fingerprint == facts["fingerprint"]


@pytest.mark.parametrize("way", [open_documents, lambda files, words: pack(files, words, 1, 2, 4)])
def test_documents_under_another_suffix_are_other_documents(tmp_path: Path, way: Any) -> None:
    """A .txt has a line a sentence; a .csv begins with a header, and each of its rows is a document."""
    content = "text\n" + "".join(f"one {number} two. Three four five.\n\n" for number in range(40))
    plain, table = (write(tmp_path / f"a{suffix}", content) for suffix in (".txt", ".csv"))
    assert way([plain], HashTokenizer()).fingerprint != way([table], HashTokenizer()).fingerprint


def test_rows_with_other_special_tokens_are_other_rows(tmp_path: Path) -> None:
    text = write(tmp_path / "a.txt", "".join(f"one {number} two three four five.\n\n" for number in range(40)))
    first, second = (pack([text], HashTokenizer(), start, 2, 4) for start in (1, 7))
    assert (int(first.train[0, 0]), int(second.train[0, 0])) == (1, 7)


@pytest.mark.parametrize(
    "way",
    [
        opened,
        lambda file, words: open_documents([file], words),
        lambda file, words: pack([file], words, 1, 2, 4),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_refused_and_not_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    """Its records would be found again under the name of the earlier content."""
    for room in (corpus_writer, packing):
        monkeypatch.setattr(room, "BLOCK", 4)
    text = "".join(f"one {number} two three four five.\n\n" for number in range(40))
    path = write(tmp_path / "a.txt", text)

    def meanwhile(texts: list[str]) -> Any:
        write(path, "other words of the same line\n\n" + text)
        return HashTokenizer().flat(texts)

    words = HashTokenizer(flat=meanwhile)
    with pytest.raises(InputError, match="the file changed while it was read"):
        way(path, words=words) if way is opened else way(path, words)
    assert not [file for file in cache.rglob("*") if file.is_file()]


def test_a_key_that_is_no_text_is_one_sentence() -> None:
    assert "the key 1 of a dictionary is not a string" in complaint([{1: "a"}])
