"""A filter over an Arrow table: which rows pass. A row without a value passes no test but ``null``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.search.row_filter import ColumnTest, Filter, Joined

Mask = npt.NDArray[np.bool_]
COMPARED = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def mask_of(table: Any, found: Filter, prefix: str) -> Mask:
    """[rows]; a column of the filter is the column ``prefix`` + its name, and one that is missing holds no value."""
    if isinstance(found, Joined):
        parts = [mask_of(table, part, prefix) for part in found.parts]
        return np.logical_and.reduce(parts) if found.word == "and" else np.logical_or.reduce(parts)
    return _tested(table, found, f"{prefix}{found.column}")


def _tested(table: Any, test: ColumnTest, name: str) -> Mask:
    from pyarrow import compute

    if name not in table.column_names:  # an older block than the column
        return np.full(table.num_rows, test.sign == "null", dtype=np.bool_)
    column = table.column(name)
    if test.sign in ("null", "not null"):
        passed = column.is_null() if test.sign == "null" else column.is_valid()
    elif test.sign in COMPARED:
        passed = getattr(compute, COMPARED[test.sign])(*_alike(column, test.values[0]))
    elif test.sign.endswith("like"):
        passed = compute.match_like(column, pattern=test.values[0])
    else:
        passed = _among(column, test.values)
    if test.sign.startswith("not ") and test.sign != "not null":
        passed = compute.invert(passed)
    return np.asarray(compute.fill_null(passed, False).to_numpy(), dtype=np.bool_)


def _among(column: Any, values: tuple[Any, ...]) -> Any:
    """As ``is_in``, but no value stays no value."""
    from pyarrow import compute

    passed = compute.equal(*_alike(column, values[0]))
    for value in values[1:]:
        passed = compute.or_kleene(passed, compute.equal(*_alike(column, value)))
    return passed


def _alike(column: Any, value: Any) -> tuple[Any, Any]:
    """Both whole numbers or both floats: Arrow refuses to compare a float with a whole number beyond 2⁵³."""
    import pyarrow

    if isinstance(value, float) and pyarrow.types.is_integer(column.type):
        return column.cast(pyarrow.float64(), safe=False), pyarrow.scalar(value)
    if isinstance(value, int) and pyarrow.types.is_floating(column.type):
        return column, pyarrow.scalar(float(value))
    return column, pyarrow.scalar(value)
