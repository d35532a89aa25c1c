"""How the blocks of a backbone are recognised among the names of its parameters."""

from __future__ import annotations

import re

BLOCK = re.compile(r"\.(layers?|blocks?|h)\.\d+\.")
