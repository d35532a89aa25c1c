"""Readers: every format, packed or not, gives the same records; every bad file gives one sentence."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import os
import re
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest

from isotrope.data.readers import read
from isotrope.data.record_types import RECORD_TYPES, Record, record_type_named
from isotrope.data.tables import header_of
from isotrope.errors import InputError

PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
TABLES = (".tsv", ".csv", ".jsonl", ".parquet")

# The published headers of each record_type, and two records under them. The texts hold quotes, commas and two scripts.
TEXTS = ('She said "no", twice', "它是红色的。", "plain words")
HEADERS = [
    ("sentences", ("text",)),
    ("sentences", ("sentence",)),
    ("documents", ("document",)),
    ("pairs", ("anchor", "positive")),
    ("pairs", ("sent0", "sent1")),
    ("pairs", ("premise", "entailment")),
    ("triples", ("anchor", "positive", "negative")),
    ("triples", ("sent0", "sent1", "hard_neg")),
    ("triples", ("premise", "entailment", "contradiction")),
    ("scored-pairs", ("sentence1", "sentence2", "score")),
    ("labelled", ("text", "label")),
]


def as_tsv(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in [header, *rows]).encode()


def as_csv(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    return text.getvalue().encode()


def as_jsonl(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> bytes:
    return "".join(json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) + "\n" for row in rows).encode()


def as_parquet(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> bytes:
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    target = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), target)
    return target.getvalue()


WRITERS = {".tsv": as_tsv, ".csv": as_csv, ".jsonl": as_jsonl, ".parquet": as_parquet}


def records_of(path: Path, record_type: str, **options: Any) -> list[Record]:
    return list(read(path, record_type_named(record_type), **options))


def texts_of(path: Path, record_type: str = "sentences", **options: Any) -> list[str]:
    return [record.texts[0] for record in records_of(path, record_type, **options)]


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def complaint(path: Path, record_type: str = "sentences", **options: Any) -> str:
    """The one sentence a bad file gives; it always names the file."""
    with pytest.raises(InputError) as caught:
        records_of(path, record_type, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert message[-1] in ".?"
    assert not re.search(r"[.?!] [A-Z]", message), f"more than one sentence: {message}"
    return message


# ---- every format, every record_type


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("suffix", TABLES)
@pytest.mark.parametrize(("record_type", "header"), HEADERS)
def test_a_table_gives_its_records_by_column_name(
    tmp_path: Path, suffix: str, packing: str, record_type: str, header: tuple[str, ...]
) -> None:
    rows = [TEXTS[: len(header)], TEXTS[::-1][: len(header)]]
    path = write(tmp_path / f"data{suffix}{packing}", PACKERS[packing](WRITERS[suffix](header, rows)))
    fields = len(RECORD_TYPES[record_type].fields)
    records = records_of(path, record_type)
    assert [record.texts for record in records] == [row[:fields] for row in rows]
    assert [record.value for record in records] == [
        row[fields] if RECORD_TYPES[record_type].value else None for row in rows
    ]
    assert header_of(path) == header


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("record_type", ["sentences", "documents"])
def test_a_text_file_gives_a_sentence_a_line(tmp_path: Path, packing: str, record_type: str) -> None:
    path = write(tmp_path / f"data.txt{packing}", PACKERS[packing]("first line\n第二行。\nno line end".encode()))
    assert texts_of(path, record_type) == ["first line", "第二行。", "no line end"]
    assert header_of(path) is None


def test_blank_lines_of_a_text_file_part_documents(tmp_path: Path) -> None:
    records = records_of(write(tmp_path / "a.txt", "a\nb\n\n \nc\n"), "sentences")
    assert [(record.texts[0], record.line) for record in records] == [("a", 1), ("b", 2), ("", 3), ("", 4), ("c", 5)]
    a, b, *_, c = (record.document for record in records)
    assert a == b != c


@pytest.mark.parametrize("name", ["A.TXT", "two.dots.txt", "A.Txt.GZ"])
def test_the_suffix_decides_and_its_case_does_not_matter(tmp_path: Path, name: str) -> None:
    content = gzip.compress(b"hello\n") if name.endswith("GZ") else b"hello\n"
    assert texts_of(write(tmp_path / name, content)) == ["hello"]


# ---- columns


def test_columns_are_found_among_others_in_any_order_and_case(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", as_tsv(("id", "Negative", " ANCHOR ", "positive"), [("7", "n", "a", "p")]))
    assert records_of(path, "triples")[0].texts == ("a", "p", "n")


@pytest.mark.parametrize("suffix", TABLES)
def test_columns_can_be_given_by_name(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", WRITERS[suffix](("left", "gold", "right"), [("l", "0.5", "r")]))
    (record,) = records_of(path, "scored-pairs", columns=["right", "left", "gold"])
    assert (record.texts, record.value) == (("r", "l"), "0.5")


def test_given_columns_win_over_known_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", as_csv(("text", "title"), [("body", "head")]))
    assert texts_of(path, columns=["title"]) == ["head"]


def test_a_single_column_needs_no_known_name(tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / "a.csv", "utterance\nhello\n")) == ["hello"]


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    message = complaint(write(tmp_path / "a.csv", "one,two\na,b\n"), columns=["three"])
    assert "'three'" in message
    assert "'one', 'two'" in message


NESTED = [{"id": 1, "ticket": {"body": "one", "by": {"name": "x"}}}, {"id": 2, "ticket": {"body": "two", "by": {}}}]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_field_of_an_object_is_a_column_by_its_dotted_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in NESTED), encoding="utf-8")
    else:
        parquet.write_table(pyarrow.Table.from_pylist(NESTED), path)
    assert texts_of(path, columns=["ticket.body"]) == ["one", "two"]
    assert texts_of(path, columns=["ticket.by.name"]) == ["x", ""]
    found = records_of(path, "labelled", columns=["ticket.body", "id"])
    assert [record.value for record in found] == ["1", "2"]
    assert "no field 'ticket.boddy'; its fields: 'body', 'by'." in complaint(path, columns=["ticket.boddy"])
    assert "no field 'id.x'; no object there." in complaint(path, columns=["id.x"])
    assert "a dict found; name one of its fields, such as COLUMN.body." in complaint(path, columns=["ticket"])


@pytest.mark.parametrize(
    ("first", "column", "last"),
    [
        ({"ticket": {"body": None, "by": {}}}, "ticket.body", "two"),
        ({"ticket": None}, "ticket.body", "two"),
        ({"ticket": {"by": None}}, "ticket.by.name", ""),
    ],
)
def test_a_null_in_the_first_row_lacks_no_field(tmp_path: Path, first: dict[str, Any], column: str, last: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [first, {"id": 0}, *NESTED]), encoding="utf-8")
    assert texts_of(path, columns=[column])[-1] == last
    assert f"no field '{column}x'; its fields: " in complaint(path, columns=[f"{column}x"])


def test_a_dotted_name_that_is_a_column_stays_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps({"a.b": "flat", "a": {"b": "deep"}}) + "\n")
    assert texts_of(path, columns=["a.b"]) == ["flat"]


def test_a_name_with_a_comma_is_said_to_need_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '"Body, full",id\none,1\n')
    assert "a name with a comma goes in double quotes" in complaint(path, columns=["Body", "full"])
    assert texts_of(path, columns=["Body, full"]) == ["one"]


def test_too_few_columns_are_counted_and_the_wanted_ones_named(tmp_path: Path) -> None:
    message = complaint(write(tmp_path / "a.csv", "one,two,three\na,b,c\n"), "triples", columns=["one", "two"])
    assert "triples take 3 columns (anchor, positive, negative)" in message
    assert "`columns` names 2 (one, two)" in message


@pytest.mark.parametrize("suffix", TABLES)
def test_unknown_columns_are_named_with_the_wanted_ones(tmp_path: Path, suffix: str) -> None:
    message = complaint(write(tmp_path / f"a{suffix}", WRITERS[suffix](("one", "two"), [("a", "b")])), "triples")
    assert "'one', 'two'" in message
    assert "anchor/positive/negative" in message
    assert "`columns`" in message


@pytest.mark.parametrize("record_type", ["pairs", "triples", "scored-pairs", "labelled"])
def test_a_text_file_cannot_hold_more_than_one_column(tmp_path: Path, record_type: str) -> None:
    assert f"{record_type} were asked for" in complaint(write(tmp_path / "a.txt", "hello\n"), record_type)


# ---- quotes, line ends, byte order marks


def test_quotes_in_a_tsv_field_are_text_even_unbalanced_ones(tmp_path: Path) -> None:
    rows = [('"open', "b"), ('mid"dle', '"'), ('"shut"', 'c""'), ("it's", "'")]
    path = write(tmp_path / "a.tsv", as_tsv(("anchor", "positive"), rows))
    assert [record.texts for record in records_of(path, "pairs")] == rows


def test_a_csv_field_may_hold_quotes_commas_and_line_ends(tmp_path: Path) -> None:
    rows = [('say "hi", twice', "two\nlines"), ("", "\r\nthree\r\n\r\nlines"), ('"', ",")]
    path = write(tmp_path / "a.csv", as_csv(("anchor", "positive"), rows))
    expected = [('say "hi", twice', "two lines"), ("", "three lines"), ('"', ",")]
    assert [record.texts for record in records_of(path, "pairs")] == expected


def test_a_csv_quote_that_never_closes_does_not_swallow_the_file(tmp_path: Path) -> None:
    # Read leniently, everything below line 3 would become one long text.
    path = write(tmp_path / "a.csv", 'text\nfine\n"not fine\nfour\nfive\n')
    assert complaint(path).startswith(f"{path}:3:")


def test_a_quoted_last_csv_field_without_line_end_is_whole(tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / "a.csv", 'text\n"last\none"')) == ["last one"]


@pytest.mark.parametrize(
    ("suffix", "content"), [(".txt", "one\ntwo\n"), (".tsv", "text\none\ntwo\n"), (".csv", "text\none\ntwo\n")]
)
def test_windows_line_ends_and_the_byte_order_mark_leave_no_trace(tmp_path: Path, suffix: str, content: str) -> None:
    path = write(tmp_path / f"a{suffix}", b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode())
    assert texts_of(path) == ["one", "two"]
    assert header_of(path) in (None, ("text",))


def test_a_json_file_with_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"text": "one"}\r\n\r\n{"text": "two"}\r\n')
    assert texts_of(path) == ["one", "two"]


def test_white_space_is_folded(tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / "a.txt", "  a \u3000 b\u00a0c\t d  \n")) == ["a b c d"]


# ---- cells


def test_json_rows_may_be_plain_strings(tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / "a.jsonl", '"one"\n"two \\u00e9"\n{"text": "three"}\n')) == [
        "one",
        "two é",
        "three",
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_numbers_are_written_out_and_null_is_blank(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", WRITERS[suffix](("sentence1", "sentence2", "score"), [("a", None, 2.5)]))
    (record,) = records_of(path, "scored-pairs")
    assert (record.texts, record.value) == (("a", ""), "2.5")


def test_parquet_text_stored_as_bytes_is_decoded(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", as_parquet(("text",), [("naïve".encode(),)]))
    assert texts_of(path) == ["naïve"]


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    """A row that goes on over several lines is named by the one where it begins."""
    tsv = write(tmp_path / "a.tsv", "text\n\none\n\ntwo\n")
    assert [record.line for record in records_of(tsv, "sentences")] == [3, 5]
    table = write(tmp_path / "a.csv", 'text\none\n"two\nlines"\nlast\n')
    assert [record.line for record in records_of(table, "sentences")] == [2, 3, 5]


def test_a_tsv_row_of_empty_fields_is_a_record_to_be_counted(tmp_path: Path) -> None:
    assert [
        record.texts for record in records_of(write(tmp_path / "a.tsv", "anchor\tpositive\n\t\na\tb\n"), "pairs")
    ] == [
        ("", ""),
        ("a", "b"),
    ]


# ---- documents and splitting


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_documents_of_a_table_are_cut_and_keep_together(tmp_path: Path, suffix: str) -> None:
    rows = [("A title\n\nOne here. Two there.",), ("红色。蓝色。",)]
    records = records_of(write(tmp_path / f"a{suffix}", WRITERS[suffix](("text",), rows)), "documents")
    # The title stands alone only if the blank line is still there when the text is cut.
    assert [(record.texts[0], record.document) for record in records] == [
        ("A title", 0),
        ("One here.", 0),
        ("Two there.", 0),
        ("红色。", 1),
        ("蓝色。", 1),
    ]


@pytest.mark.parametrize("record_type", ["sentences", "documents"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_list_of_sentences_is_a_document_already_cut(tmp_path: Path, suffix: str, record_type: str) -> None:
    path = write(tmp_path / f"a{suffix}", WRITERS[suffix](("sentences",), [(["a  b. C", None],), (["d"],)]))
    assert [(record.texts[0], record.document) for record in records_of(path, record_type)] == [
        ("a b. C", 0),
        ("", 0),
        ("d", 1),
    ]


def test_an_empty_document_is_one_empty_record(tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / "a.jsonl", '{"text": ""}\n{"sentences": [], "text": []}\n'), "documents") == [
        "",
        "",
    ]


def test_split_cuts_lines_and_cells(tmp_path: Path) -> None:
    lines = write(tmp_path / "a.txt", "One. Two.\n\nThree.\n")
    assert [(r.texts[0], r.document) for r in records_of(lines, "sentences", split=True)] == [
        ("One.", 0),
        ("Two.", 0),
        ("", 1),
        ("Three.", 1),
    ]
    cells = write(tmp_path / "a.jsonl", '{"text": "Head\\n\\nOne. Two.", "label": "x"}\n')
    assert [(r.texts[0], r.value) for r in records_of(cells, "labelled", split=True)] == [
        ("Head", "x"),
        ("One.", "x"),
        ("Two.", "x"),
    ]


def test_split_of_pairs_is_refused(tmp_path: Path) -> None:
    message = complaint(write(tmp_path / "a.tsv", "anchor\tpositive\na\tb\n"), "pairs", split=True)
    assert "one text column" in message


# ---- bad input


def test_a_missing_file(tmp_path: Path) -> None:
    assert "no such file" in complaint(tmp_path / "none.txt")


def test_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data.txt"
    folder.mkdir()
    assert "this is a folder" in complaint(folder)


@pytest.mark.parametrize("suffix", [".txt", *TABLES, ".txt.gz"])
def test_an_empty_file(tmp_path: Path, suffix: str) -> None:
    assert "the file is empty" in complaint(write(tmp_path / f"a{suffix}", b""))


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl"])
@pytest.mark.parametrize("content", [b"", b"\n \n\r\n"])
def test_a_packed_table_of_nothing(tmp_path: Path, suffix: str, content: bytes) -> None:
    # Twenty bytes of gzip are no empty file, and yet there is not even a header in them.
    assert "hold" in complaint(write(tmp_path / f"a{suffix}.gz", gzip.compress(content)))


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.gz", "a.txt.zip"])
def test_an_unknown_suffix(tmp_path: Path, name: str) -> None:
    message = complaint(write(tmp_path / name, b"hello"))
    assert ".txt, .tsv, .csv, .jsonl, .parquet" in message


def test_a_file_one_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.txt", "hello\n")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, who may run these tests, is never refused
    assert "permission" in complaint(path)


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".csv", ".jsonl"])
def test_a_byte_that_is_not_utf8_is_named_with_its_line(tmp_path: Path, suffix: str, packing: str) -> None:
    lines = [b'"text"', b'"good"', b'"caf\xe9"']
    path = write(tmp_path / f"a{suffix}{packing}", PACKERS[packing](b"\n".join(lines)))
    message = complaint(path)
    assert message.startswith(f"{path}:3:")
    assert "0xe9" in message


@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".csv", ".jsonl"])
def test_a_nul_byte_is_named_with_its_line(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", b'"text"\n"a\0b"\n')
    message = complaint(path)
    assert message.startswith(f"{path}:2:")
    assert "NUL" in message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_a_utf16_file(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "a.txt", "hello\n".encode(encoding))
    assert "iconv -f utf-16 -t utf-8 a.txt" in complaint(path)


@pytest.mark.parametrize(("suffix", "separator"), [(".tsv", "\t"), (".csv", ",")])
@pytest.mark.parametrize("fields", [1, 3])
def test_a_wrong_number_of_fields_is_counted(tmp_path: Path, suffix: str, separator: str, fields: int) -> None:
    path = write(
        tmp_path / f"a{suffix}",
        "\n".join([separator.join(["anchor", "positive"]), separator.join("ab"), separator.join("x" * fields)]),
    )
    message = complaint(path, "pairs")
    assert message.startswith(f"{path}:3: {fields} field")
    assert "names 2" in message


@pytest.mark.parametrize("bad", ['{"text": ', "{'text': 'x'}", "hello"])
def test_a_line_that_is_not_json(tmp_path: Path, bad: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n{bad}\n')
    message = complaint(path)
    assert message.startswith(f"{path}:2:")
    assert "not JSON" in message


@pytest.mark.parametrize(("bad", "found"), [("3", "int"), ('["a"]', "list"), ("null", "NoneType")])
def test_a_json_row_that_is_no_object(tmp_path: Path, bad: str, found: str) -> None:
    path = write(tmp_path / "a.jsonl", f'"fine"\n{bad}\n')
    message = complaint(path)
    assert message.startswith(f"{path}:2:")
    assert f"{found} found" in message


@pytest.mark.parametrize("cell", ['["a", "b"]', '{"en": "a"}'])
def test_a_list_or_object_where_a_text_belongs(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "fine", "label": "x"}}\n{{"text": {cell}, "label": "x"}}\n')
    assert complaint(path, "labelled").startswith(f"{path}:2: a text was expected")


def test_half_a_character_in_json(tmp_path: Path) -> None:
    # Cutting a tweet in the middle of an emoji leaves this; no tokenizer and no file takes it.
    path = write(tmp_path / "a.jsonl", '"fine"\n"broken \\ud83d"\n')
    assert complaint(path).startswith(f"{path}:2:")


@pytest.mark.parametrize("packing", [".gz", ".xz"])
@pytest.mark.parametrize("suffix", [".txt", *TABLES])
def test_a_packed_file_cut_short(tmp_path: Path, suffix: str, packing: str) -> None:
    rows = [(f"text number {i}",) for i in range(300)]
    content = WRITERS[suffix](("text",), rows) if suffix in WRITERS else as_tsv(("text",), rows)
    packed = PACKERS[packing](content)
    assert "damaged or cut short" in complaint(write(tmp_path / f"a{suffix}{packing}", packed[: len(packed) // 2]))


@pytest.mark.parametrize("packing", [".gz", ".xz"])
@pytest.mark.parametrize("suffix", [".txt", *TABLES])
def test_a_file_that_is_not_packed_as_its_name_says(tmp_path: Path, suffix: str, packing: str) -> None:
    path = write(tmp_path / f"a{suffix}{packing}", b"text\nhello\n")
    assert "damaged or cut short" in complaint(path)
    if suffix != ".txt":
        with pytest.raises(InputError, match="damaged"):
            header_of(path)


@pytest.mark.parametrize("packing", [".gz", ".xz"])
def test_a_packed_file_with_a_changed_byte(tmp_path: Path, packing: str) -> None:
    packed = bytearray(PACKERS[packing](b"".join(b"line %d\n" % (i * i) for i in range(500))))
    packed[len(packed) // 2] ^= 0xFF
    assert "damaged" in complaint(write(tmp_path / f"a.txt{packing}", bytes(packed)))


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_parquet_file_without_its_end(tmp_path: Path, packing: str, keep: float) -> None:
    whole = as_parquet(("text",), [(f"text {i}",) for i in range(500)])
    content = whole[: int(len(whole) * keep)] or b"text,label\n"
    assert "parquet" in complaint(write(tmp_path / f"a.parquet{packing}", PACKERS[packing](content)))


def test_a_parquet_file_damaged_in_the_middle(tmp_path: Path) -> None:
    content = bytearray(as_parquet(("text",), [(f"text number {i}",) for i in range(5000)]))
    content[200:3000] = b"\xff" * 2800  # the footer is whole, so the damage shows only when the rows are read
    assert "damaged" in complaint(write(tmp_path / "a.parquet", bytes(content)))


def test_columns_that_differ_in_case_alone_are_refused_unless_one_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\t Text\na b\tc d\n")
    with pytest.raises(InputError, match=r"columns 'text' and ' Text' differ in case or blanks alone"):
        records_of(path, "sentences")
    assert [one.texts for one in read(path, record_type_named("sentences"), ["text"])] == [("a b",)]


def test_a_parquet_column_of_nanoseconds_is_no_obstacle(tmp_path: Path) -> None:
    times = pyarrow.array([1, 2], pyarrow.timestamp("ns"))
    parquet.write_table(pyarrow.table({"text": ["one", "two"], "label": times}), tmp_path / "a.parquet")
    assert texts_of(tmp_path / "a.parquet") == ["one", "two"]
    assert [one.value for one in records_of(tmp_path / "a.parquet", "labelled")] == [
        "1970-01-01 00:00:00.000000001",
        "1970-01-01 00:00:00.000000002",
    ]


def test_a_message_on_a_row_of_several_lines_names_the_first(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label\nx,1\n"a\nb\nc",1,2\n')
    with pytest.raises(InputError, match=r"a.csv:3: 3 fields found"):
        records_of(path, "labelled")


def test_plain_text_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.txt: plain text has no columns, and body was asked for; leave columns"):
        list(read(tmp_path / "a.txt", record_type_named("sentences"), ["body"]))
