"""JSON that every program reads and no terminal obeys: NaN and infinity are null, control characters are escaped.

Python writes bare NaN, which is no JSON, and leaves the control characters of C1 and those that turn the direction of
writing as they are. ``files.write_json`` writes numbers so too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_RAW = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")  # only strings can hold these


def json_text(value: Any) -> str:
    """The value as JSON on several lines."""
    text = json.dumps(finite(value), ensure_ascii=False, indent=2, allow_nan=False)
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def finite(value: Any) -> Any:
    """The same value with None for each number that is none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value
