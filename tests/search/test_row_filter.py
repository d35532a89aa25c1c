"""Filters: every form against plain Python, and what is no filter is one sentence."""

from __future__ import annotations

import pyarrow
import pytest

from isotrope.errors import InputError
from isotrope.search.filter_masks import mask_of
from isotrope.search.milvus_engine import expression
from isotrope.search.row_filter import Filter, read_filter

ROWS = [
    {"year": 2019, "lang": "en", "free": True, "odd name": "a'b"},
    {"year": 2021, "lang": "de", "free": False, "odd name": None},
    {"year": None, "lang": "fr", "free": None, "odd name": "x%y"},
    {"year": 2022.5, "lang": None, "free": True, "odd name": "100"},
]
KINDS = {"year": "number", "lang": "text", "free": "boolean", "odd name": "text", "tags": "json"}
TABLE = pyarrow.table({f"c:{name}": [row[name] for row in ROWS] for name in ROWS[0]})


def passed(where: str) -> list[int]:
    return [row for row, found in enumerate(mask_of(TABLE, read_filter(where, KINDS), "c:")) if found]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("year > 2020", [1, 3]),
        ("year>=2021", [1, 3]),
        ("year = 2021", [1]),
        ("year == 2022.5", [3]),
        ("year <> 2021", [0, 3]),
        ("year != 2021 AND lang = 'en'", [0]),
        ("not year > 2020", [0]),
        ("not (year > 2020 or lang = 'fr')", [0]),
        ("NOT not year > 2020", [1, 3]),
        ("year < 2020 or year > 2022 or lang = 'fr'", [0, 2, 3]),
        ("year < 2020 or lang = 'de' and year = 2021", [0, 1]),
        ("(year < 2020 or lang = 'de') and year = 2021", [1]),
        ("lang in ('en', \"de\")", [0, 1]),
        ("lang not in ('en')", [1, 2]),
        ("not lang in ('en')", [1, 2]),
        ("lang like 'd%' or lang like '_r'", [1, 2]),
        ("lang not like 'd%'", [0, 2]),
        ("year is null", [2]),
        ("year is not null and lang is null", [3]),
        ("free = true", [0, 3]),
        ("free != TRUE", [1]),
        ("`odd name` = 'a''b'", [0]),
        ("`odd name` = '100'", [3]),
        ("lang >= 'en'", [0, 2]),
        ("year > -5 and year < 1e9", [0, 1, 3]),
        ("tags is null", [0, 1, 2, 3]),
    ],
)
def test_a_filter_keeps_its_rows(where: str, expected: list[int]) -> None:
    assert passed(where) == expected


def test_whole_numbers_of_nineteen_digits_are_compared_to_their_last() -> None:
    """As floats all of these are one number, and a filter to delete one row would take its neighbours."""
    ids = [2**60 + place for place in range(4)]
    table = pyarrow.table({"c:id": ids})
    for where, expected in (
        (f"id = {ids[1]}", [1]),
        (f"id > {ids[1]}", [2, 3]),
        (f"id in ({ids[0]}, {ids[3]})", [0, 3]),
    ):
        assert mask_of(table, read_filter(where, {"id": "number"}), "c:").nonzero()[0].tolist() == expected
    assert not mask_of(table, read_filter(f"id > {2**63}", {"id": "number"}), "c:").any()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "it is empty"),
        ("year >", "ends where a value"),
        ("year", "a test such as > 2020"),
        ("and", "a column is expected where 'and'"),
        ("yeer > 3", "unknown column 'yeer'; did you mean 'year'"),
        ("year > 'new'", "holds numbers"),
        ("lang = en", "put a text in quotes: 'en'"),
        ("lang = 5", "texts, which stand in quotes"),
        ("free = 1", "true or false"),
        ("tags = 'a'", "lists or objects"),
        ("year like '20%'", "'like' is for texts"),
        ("year > 3)", "follows where the filter should end"),
        ("((year > 3)", "parenthesis is not closed"),
        ("lang in 'en'", "values in parentheses"),
        ("lang in ()", "is no filter|compares"),
        ("year is 5", "followed by null"),
        ("year > 2020; drop table", "was not understood"),
        ("__import__('os')", "unknown column '__import__'"),
        ("year > 1 .__class__", "was not understood"),
        ("(" * 100 + "year > 1" + ")" * 100, "nested more than"),
        ("year > 1 or " * 2000 + "year > 1", "longer than"),
        ("lang = 'never closed", "was not understood"),
        ("lang = '\ud800'", "half a character"),
    ],
)
def test_what_is_no_filter_is_said(where: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as problem:
        read_filter(where, KINDS)
    assert problem.value.setting == "where"


def test_a_double_negation_is_the_filter_itself() -> None:
    found: Filter = read_filter("not (year > 2020 and lang not in ('en') or free is null)", KINDS)
    assert found.negated().negated() == found


def test_values_cannot_leave_their_quotes_in_the_language_of_milvus() -> None:
    found = read_filter("""lang = 'a" or row > 0 or "' and not year in (1, 2.5)""", KINDS)
    assert expression(found, {"lang": "c1", "year": "c0"}) == (
        r"""(c1 == "a\" or row > 0 or \"" and (c0 is not null and not (c0 in [1, 2.5])))"""
    )


def test_whole_numbers_beyond_float64_are_compared() -> None:
    """A column of whole numbers with a float, a column of floats with a whole number, and what Milvus is asked."""
    large = (1 << 53) + 1
    whole, floats = pyarrow.table({"c:year": [large, 5, None]}), pyarrow.table({"c:year": [float(large), 5.5, None]})
    for table, where, expected in (
        (whole, "year > 4.5", [True, True, False]),
        (whole, f"year = {large}", [True, False, False]),
        (whole, f"year in ({large}, 5.0)", [True, True, False]),
        (floats, f"year < {large}", [False, True, False]),
        (floats, f"year not in ({large}, 7)", [False, True, False]),
    ):
        assert mask_of(table, read_filter(where, KINDS), "c:").tolist() == expected, where
    assert expression(read_filter(f"year = {large}", KINDS), {"year": "c0"}) == "c0 == 9007199254740992.0"
