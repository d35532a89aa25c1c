"""Files that a careful stranger brings: each is read whole, or refused with what it is and what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from isotrope.data.packed_streams import opened
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.data.tables import check_file, check_readable, check_source, header_of
from isotrope.data.text_lines import LONGEST, lines_of
from isotrope.errors import InputError


def texts(path: Path, record_type: str = "sentences") -> list[tuple[str, ...]]:
    return [record.texts for record in read(path, record_type_named(record_type))]


def refused(path: Path, record_type: str = "sentences") -> str:
    with pytest.raises(InputError) as error:
        texts(path, record_type)
    return str(error.value)


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("check", [check_file, check_source])
def test_records_in_place_of_a_file_are_one_sentence(check: Any) -> None:
    with pytest.raises(InputError, match="A file is read here, and tuple was given"):
        check(("a", "b", 1.0))


# ---- long lines


@pytest.mark.parametrize("packing", ["", ".gz", ".xz"])
def test_a_line_beyond_the_limit_is_refused_before_it_is_read(tmp_path: Path, packing: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[packing]
    path = written(tmp_path, f"a.txt{packing}", pack(b"short\n" + b"x" * (20 * LONGEST)))
    tracemalloc.start()
    try:
        assert f"a.txt{packing}:2: the line is longer than {LONGEST:,} bytes" in refused(path)
        assert tracemalloc.get_traced_memory()[1] < 6 * LONGEST
    finally:
        tracemalloc.stop()


def test_a_line_of_the_limit_is_read(tmp_path: Path) -> None:
    line = "x" * LONGEST
    assert [text for _, text in lines_of(written(tmp_path, "a.txt", f"{line}\r\n{line}\n"))] == [line, line]


def test_a_parquet_cell_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": ["x" * (LONGEST + 1)]}), path)
    assert f"longer than {LONGEST:,}" in refused(path)
    parquet.write_table(pyarrow.table({"text": ["short"] * 9 + ["x" * (LONGEST + 1)]}), path)
    assert f"a.parquet:10: the text is longer than {LONGEST:,}" in refused(path)


def test_a_csv_field_may_be_as_long_as_a_line(tmp_path: Path) -> None:
    assert texts(written(tmp_path, "a.csv", f"text\n{'x' * 200_000}\n")) == [("x" * 200_000,)]


def test_a_csv_field_that_cannot_be_read_is_named_in_plain_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a.csv:2: a carriage return stands outside quotes; quote the field, or"):
        texts(written(tmp_path, "a.csv", "text,label\none\rtwo,1\n"))
    with pytest.raises(InputError, match=r"a.csv:3: a field is longer than 4,000,000 characters; break it into rows"):
        texts(written(tmp_path, "a.csv", 'text,label\na,1\n"' + "one two\n" * 600_000 + '",1\n'))


# ---- JSON


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"text": ' + "9" * 5000 + "}", "too many digits"),
        ('{"text": "a", "text": "b"}', "the key 'text' stands twice"),
        ('{"text": NaN}', "NaN is not JSON"),
        ('{"text": "a", "more": [-Infinity]}', "-Infinity is not JSON"),
        ('{"text": 1e999}', "inf found"),
    ],
)
def test_json_that_python_would_take_or_choke_on(tmp_path: Path, line: str, said: str) -> None:
    path = written(tmp_path, "a.jsonl", f'{{"text": "fine"}}\n{line}\n')
    assert f"{path}:2: " in refused(path)
    assert said in refused(path)


# ---- headers and separators


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "text,text\na,b\n", "the column 'text' stands twice"),
        ("a.tsv", "text\tscore\ttext\na\t1\tb\n", "the column 'text' stands twice"),
        ("a.tsv", "sentence1,sentence2\na,b\n", "separated by commas"),
    ],
)
def test_a_header_that_would_be_misread(tmp_path: Path, name: str, content: str, said: str) -> None:
    assert said in refused(written(tmp_path, name, content))


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_csv_of_a_spreadsheet_may_have_another_mark_than_the_comma(tmp_path: Path, mark: str) -> None:
    source = written(tmp_path, "a.csv", f'text{mark}label\n"one, two{mark} ""three"""{mark}a\nfour, five{mark}b\n')
    found = list(read(source, record_type_named("labelled")))
    assert [(record.texts, record.value) for record in found] == [
        ((f'one, two{mark} "three"'.replace("\t", " ").replace("  ", " "),), "a"),
        (("four, five",), "b"),
    ]


def test_a_mark_within_a_quoted_name_separates_nothing(tmp_path: Path) -> None:
    assert texts(written(tmp_path, "a.csv", '"notes; all"\none; two\n')) == [("one; two",)]


def test_columns_without_a_name_may_be_many(tmp_path: Path) -> None:
    assert texts(written(tmp_path, "a.csv", ",text,\n1,a,\n")) == [("a",)]


def test_a_table_that_names_a_column_twice_in_parquet(tmp_path: Path) -> None:
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    parquet.write_table(table, tmp_path / "a.parquet")
    assert "the column 'text' stands twice" in refused(tmp_path / "a.parquet")


def test_a_header_of_a_megabyte_is_not_repeated_in_the_message(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "x" * 1_000_000 + "\ty\na\tb\n")
    assert len(refused(path, "pairs")) < 500


# ---- line ends and encodings


@pytest.mark.parametrize("content", ["one\rtwo\rthree", "one\rtwo\rthree\r", "one\rtwo\n"])
@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv"])
def test_lines_that_end_with_a_carriage_return_alone(tmp_path: Path, name: str, content: str) -> None:
    assert "end with a carriage return alone" in refused(written(tmp_path, name, content))


def test_a_carriage_return_inside_a_line_is_a_blank(tmp_path: Path) -> None:
    assert texts(written(tmp_path, "a.txt", "one\rtwo\nthree\r\r\n")) == [("one two",), ("three",)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_wide_encodings_are_named(tmp_path: Path, encoding: str, end: str) -> None:
    said = refused(written(tmp_path, "a.txt", f"hello world{end}".encode(encoding)))
    assert f"iconv -f {'utf-32' if encoding == 'utf-32' else 'utf-16'} " in said
    assert "latin1" not in said


def test_the_conversion_of_a_packed_file_unpacks_it(tmp_path: Path) -> None:
    said = refused(written(tmp_path, "a.tsv.gz", gzip.compress(b"text\ncaf\xe9\n")))
    assert "gunzip -c a.tsv.gz | iconv -f latin1 -t utf-8 > fixed.tsv" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"hello\n", mtime=0), "a gzip file"),
        (lzma.compress(b"hello\n"), "an xz file"),
        (bz2.compress(b"hello\n" * 100), "a bzip2 file"),
        (b"PK\x03\x04\x14\x00\x08\x08", "a zip file"),
        (b"\x93NUMPY\x01\x00", "an array of numpy"),
    ],
)
def test_a_packed_or_binary_file_under_a_plain_name_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in refused(written(tmp_path, "a.txt", content))


# ---- packed files


@pytest.mark.parametrize(("suffix", "pack"), [(".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)])
@pytest.mark.parametrize("rest", [b"garbage", b"\0\0\0\0garbage", b"\xfd7zXZ\0cut"])
def test_garbage_behind_a_packed_stream_is_damage(tmp_path: Path, suffix: str, pack: object, rest: bytes) -> None:
    path = written(tmp_path, f"a.txt{suffix}", pack(b"hello\n") + rest)  # type: ignore[operator]
    with pytest.raises((OSError, EOFError, lzma.LZMAError)), opened(path) as source:
        source.read()


def test_garbage_behind_an_xz_is_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt.xz", lzma.compress(b"hello\n") + b"garbage")
    assert "damaged or cut short" in refused(path)


@pytest.mark.parametrize(("suffix", "pack"), [(".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)])
def test_streams_behind_one_another_are_one_text(tmp_path: Path, suffix: str, pack: object) -> None:
    big = os.urandom(300_000)
    content = b"".join(pack(part) for part in (b"one\n", b"", big, b"two\n"))  # type: ignore[operator]
    with opened(written(tmp_path, f"a{suffix}", content)) as source:
        assert source.read() == b"one\n" + big + b"two\n"


def test_zeros_may_pad_an_xz_file(tmp_path: Path) -> None:
    content = lzma.compress(b"one\n") + bytes(8) + lzma.compress(b"two\n") + bytes(100_000)
    assert texts(written(tmp_path, "a.txt.xz", content)) == [("one",), ("two",)]


def test_a_packed_file_is_read_as_a_stream(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt.xz", lzma.compress(b"hello " * 10_000 + b"\n", preset=0) * 1000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in lines_of(path)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()


# ---- places


def test_a_pipe_and_a_device_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "a pipe or a device" in refused(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match="a pipe or a device"):
        check_readable("/dev/null")


@pytest.mark.skipif(not Path("/proc/version").is_file(), reason="this system has no /proc")
def test_a_file_whose_size_is_unknown_is_not_empty() -> None:
    assert check_readable("/proc/version") == Path("/proc/version")


def test_a_folder_that_may_not_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*words: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, "a.txt", "a\n")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", deny)
        with pytest.raises(InputError, match="permission to look into its folder was refused"):
            check_readable(path)


@pytest.mark.parametrize("name", ["x" * 300 + ".txt", "a\0b.txt"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    assert len(refused(tmp_path / name)) < 400


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    path.write_text("a\n", encoding="utf-8")
    assert "bytes that are not UTF-8; rename it" in refused(path)


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to(tmp_path / "b.txt")
    (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
    assert "in a circle" in refused(tmp_path / "a.txt")


def test_a_number_that_is_not_finite_is_no_text(tmp_path: Path) -> None:
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(pyarrow.table({"text": [1.0, float("nan")]}), tmp_path / "a.parquet")
    assert "a.parquet:2: a text or a number was expected, and nan found" in refused(tmp_path / "a.parquet")


def test_the_header_of_a_json_file_is_that_of_its_first_row(tmp_path: Path) -> None:
    buffer = io.StringIO()
    for row in ({"text": "a"}, {"text": "b", "more": 1}):
        buffer.write(json.dumps(row) + "\n")
    assert header_of(written(tmp_path, "a.jsonl", buffer.getvalue())) == ("text",)
