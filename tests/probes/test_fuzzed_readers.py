"""Every reader, given anything: what it cannot read it refuses with a sentence, and what it reads it reads whole.

ISOTROPE_FUZZ says how many examples each test tries; by default few, always the same ones.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import os
import string
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from isotrope.cli.recipe import read_recipe
from isotrope.data.json_rows import parse_row
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.data.vector_files import read_word_vectors
from isotrope.data.wiki_pages import read_pages
from isotrope.errors import InputError
from isotrope.methods.frame.settings import check, resolve
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.pretrain_settings import PretrainSettings

ASKED = os.environ.get("ISOTROPE_FUZZ")
fuzzed = settings(
    max_examples=int(ASKED or 25),
    derandomize=ASKED is None,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PACKINGS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
# What a reader may keep apart by: a text of a table is one line without NUL; white space is folded.
TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r\n\t"), max_size=40)
CELL = TEXT.map(lambda text: " ".join(text.split()))
GOOD = {
    ".txt": b"one sentence\nanother one\n\na third\n",
    ".tsv": b"sentence1\tsentence2\tscore\none\ttwo\t1\nthree\tfour\t2.5\n",
    ".csv": b'sentence1,sentence2,score\n"one, quoted","two ""x""",1\nthree,four,2\n',
    ".jsonl": b'{"sentence1": "one", "sentence2": "two", "score": 1}\n' * 2,
}


def records(path: Path, record_type: str) -> list[tuple[str, ...]]:
    return [record.texts for record in read(path, record_type_named(record_type))]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A good file with some bytes taken out, put in or repeated."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(start + 20, len(content))))
        odd = draw(st.sampled_from([b"", b'"', b"\t", b"\n", b"\r", b"\0", b"{", b"[" * 50, b"\xff", b"\xed\xa0\x80"]))
        content = content[:start] + draw(st.one_of(st.just(odd), st.binary(max_size=8))) + content[end:]
    return content


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("suffix", [*GOOD, ".parquet"])
@fuzzed
@given(data=st.data())
def test_any_bytes_are_records_or_a_sentence(tmp_path: Path, suffix: str, packing: str, data: st.DataObject) -> None:
    good = GOOD.get(suffix, b"PAR1" + bytes(40) + b"PAR1")
    content = data.draw(st.one_of(st.binary(max_size=200), damaged(good)))
    packed = data.draw(st.sampled_from([PACKINGS[packing](content), content]))
    path = tmp_path / f"a{suffix}{packing}"
    path.write_bytes(packed)
    for record_type in ("sentences", "scored-pairs", "documents", "dialogues"):
        with suppress(InputError):
            records(path, record_type)


@pytest.mark.parametrize("packing", PACKINGS)
@fuzzed
@given(texts=st.lists(TEXT, min_size=1, max_size=8))
@example(texts=["\ufeff", "a"])
@example(texts=["\x85\u2028\x1c", "b"])
def test_lines_come_back_as_they_were_written(tmp_path: Path, packing: str, texts: list[str]) -> None:
    path = tmp_path / f"a.txt{packing}"
    path.write_bytes(PACKINGS[packing]("".join(f"{text}\n" for text in [".", *texts]).encode()))
    assert records(path, "sentences") == [(".",), *((" ".join(text.split()),) for text in texts)]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
@fuzzed
@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8))
def test_tables_come_back_as_they_were_written(tmp_path: Path, suffix: str, rows: list[tuple[str, str]]) -> None:
    path = tmp_path / f"a{suffix}"
    WRITERS[suffix](path, rows)
    assert records(path, "pairs") == rows


def _write_tsv(path: Path, rows: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in [("anchor", "positive"), *rows]), encoding="utf-8", newline="")


def _write_csv(path: Path, rows: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([("anchor", "positive"), *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def _write_jsonl(path: Path, rows: list[tuple[str, str]]) -> None:
    lines = [json.dumps({"anchor": a, "positive": b}, ensure_ascii=len(a) % 2 == 0) for a, b in rows]
    path.write_text("\n".join(lines), encoding="utf-8")


def _write_parquet(path: Path, rows: list[tuple[str, str]]) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"anchor": [a for a, _ in rows], "positive": [b for _, b in rows]}), path)


WRITERS = {".tsv": _write_tsv, ".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@fuzzed
@given(line=st.one_of(st.text(max_size=80), VALUES.map(json.dumps)))
def test_any_line_is_json_or_a_sentence(line: str) -> None:
    with suppress(InputError):
        parse_row(line, "a.jsonl:1")


WORDS = ["method", "model", "pooling", "settings", "about", "seed", "simcse", "1", "[", "]", "{", "}", ":", ": ", "\n"]
WORDS += ["\n  ", "- ", "&a ", "*a", "!!int ", "!!binary ", "<<: ", "~", "'", '"', "|\n", "? ", "#", "\t", "2020-01-01"]


@fuzzed
@given(text=st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=25).map("".join)))
def test_any_text_is_a_recipe_or_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(InputError):
        assert all(isinstance(name, str) for name in read_recipe(path, "simcse").settings)


@pytest.mark.parametrize("owner", [LoopSettings, PretrainSettings])
@fuzzed
@given(data=st.data())
def test_any_value_of_a_setting_is_checked(owner: type[Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(owner.__dataclass_fields__)))
    value = data.draw(VALUES | st.floats().map(str) | st.integers().map(str))
    with suppress(InputError):
        (chosen,) = resolve({name: value}, owner)
        check(chosen)
        found = getattr(chosen, name)
        assert found is None or isinstance(found, str | bool) or -1 <= found <= 1 << 32


@fuzzed
@given(content=st.one_of(st.binary(max_size=100), damaged(b"3 2\nthe 0.5 1e-3\nchef 1 2\nboat -1 .5\n")))
def test_any_bytes_are_vectors_or_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_word_vectors(path)


PAGE = b"<mediawiki><page><title>A</title><ns>0</ns><text>a [[B|b]] {{x}}</text></page></mediawiki>"


@fuzzed
@given(content=st.one_of(damaged(PAGE), damaged(b'{"title": "A", "text": "<a href=\\"B\\">b</a>"}\n')))
def test_any_bytes_are_pages_or_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.xml"
    path.write_bytes(content or string.ascii_letters.encode())
    with suppress(InputError):
        list(read_pages(path))
